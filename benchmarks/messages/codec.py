"""How fast are messages decoded and encoded, compared to other Python codecs?

Targets: decode in at most 0.8 of the time of kio, whose reader is native (Fetch, where many fields are not sent: in its
time), and in 1/3 of kafka-python; encode in at most 1/8 of the fastest peer. CPU us per call, all codecs in turns;
`walker` is kwire without compiled code.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.messages.cases import Case, cases, elderly_cases, large_cases
from benchmarks.messages.peers import PEERS
from benchmarks.messages.timing import cpu_us, line
from kwire import plan
from kwire.messages import registry


def measure(label: str, case: Case) -> None:
    """Print the figures of a message."""
    cls = registry.get(case.name)
    codec = plan.codec(cls.SPEC, case.version, cls, kernels=True)
    walker = plan.codec(cls.SPEC, case.version, cls, kernels=False)
    wire = codec.encode(case.obj)
    assert codec.encode(codec.decode(wire)) == wire
    assert walker.encode(walker.decode(wire)) == wire
    decoders: dict[str, Callable[[], object]] = {"kwire": lambda: codec.decode(wire)}
    encoders: dict[str, Callable[[], object]] = {"kwire": lambda: codec.encode(case.obj)}
    decoders["message.decode"] = lambda: cls.decode(wire, version=case.version)
    encoders["message.encode"] = lambda: case.obj.encode(version=case.version)
    decoders["views"] = lambda: codec.decode(wire, views=True)
    decoders["walker"], encoders["walker"] = (lambda: walker.decode(wire)), (lambda: walker.encode(case.obj))
    for peer, jobs_of in PEERS.items():
        jobs = jobs_of(case.name, case.version, wire)
        if jobs is not None:
            decoders[peer], encoders[peer] = jobs
            if bytes(jobs[1]()) != wire:
                print(f"# {peer} writes other bytes for {label}")
    for way, contenders in (("decode", decoders), ("encode", encoders)):
        best = cpu_us(contenders)
        for peer in PEERS:
            if peer in best:
                print(line(f"messages.{way}.{label}", best["kwire"], "us", best[peer], peer))
        for ours in ("message.decode", "message.encode", "views", "walker"):
            if ours in best:
                print(line(f"messages.{way}.{label}.{ours}", best[ours], "us", best["kwire"], "kwire"))
    print(line(f"messages.size.{label}", len(wire), "bytes"))


def main() -> None:
    """Print the figures."""
    for label, case in {**cases(), **elderly_cases(), **large_cases()}.items():
        measure(label, case)


if __name__ == "__main__":
    main()
