"""What does it cost to decode a header in one plan with its body?

CPU us per call: header and body with separate codecs, as one frame with its length, and the body alone.
"""

from __future__ import annotations

from benchmarks.messages.cases import cases, request_header
from benchmarks.messages.timing import cpu_us, line
from kwire import plan
from kwire.messages import registry

CASES = ("OffsetCommit_v8_x50", "Produce_v9_1x10x1kB")


def main() -> None:
    """Print the figures."""
    header_cls = registry.get("RequestHeader")
    header = request_header()
    headers = plan.codec(header_cls.SPEC, 2, header_cls, kernels=True)
    for label in CASES:
        name, version, obj = cases()[label]
        cls = registry.get(name)
        bodies = plan.codec(cls.SPEC, version, cls, kernels=True)
        frames = plan.frame_codec(header_cls.SPEC, 2, header_cls, cls.SPEC, version, cls, kernels=True)
        head, body, frame = headers.encode(header), bodies.encode(obj), frames.encode((header, obj))
        assert frame == len(head + body).to_bytes(4, "big") + head + body
        best = cpu_us(
            {
                "decode.separate": lambda: (headers.decode(head), bodies.decode(body)),  # noqa: B023  # called in this iteration
                "decode.frame": lambda: frames.decode(frame),  # noqa: B023
                "decode.body": lambda: bodies.decode(body),  # noqa: B023
                "encode.separate": lambda: headers.encode(header) + bodies.encode(obj),  # noqa: B023
                "encode.frame": lambda: frames.encode((header, obj)),  # noqa: B023
                "encode.body": lambda: bodies.encode(obj),  # noqa: B023
            }
        )
        for way in ("decode", "encode"):
            for what in ("frame", "separate"):
                print(
                    line(
                        f"messages.frame.{way}.{label}.{what}",
                        best[f"{way}.{what}"],
                        "us",
                        best[f"{way}.body"],
                        "body-alone",
                    )
                )


if __name__ == "__main__":
    main()
