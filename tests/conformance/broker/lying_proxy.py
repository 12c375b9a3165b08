"""A broker that lies: kwire's, behind a proxy that spoils some of its responses."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable

from kwire.errors import KwireError
from kwire.messages import registry
from tests.rewriting_proxy import RewritingProxy, read_frame
from tests.tcp_proxy import shut

__all__ = ["LIES", "LyingProxy"]

Lie = Callable[[random.Random, bytes], bytes]


def flipped(rng: random.Random, body: bytes) -> bytes:
    data = bytearray(body)
    for _ in range(rng.randint(1, 4) if data else 0):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(data)


LIES: dict[str, Lie] = {
    "cut": lambda rng, body: body[: rng.randint(0, len(body))],
    "nothing": lambda rng, body: b"",
    "zeros": lambda rng, body: bytes(len(body)),
    "ones": lambda rng, body: b"\xff" * len(body),
    "noise": lambda rng, body: rng.randbytes(rng.randint(0, 200)),
    "flipped": flipped,
    "longer": lambda rng, body: body + rng.randbytes(9),
}


class LyingProxy(RewritingProxy):
    """Spoils the bodies of responses with a lie and the random numbers of a seed. about: the API keys it lies about."""

    def __init__(self, target: tuple[str, int], lie: str, seed: int = 1) -> None:
        super().__init__(target)
        self._rng, self._lie, self._lock = random.Random(seed), LIES[lie], threading.Lock()
        self.about: set[int] = set()

    def _requests(self, client: socket.socket, broker: socket.socket, sent: deque[tuple[int, int]]) -> None:
        with contextlib.suppress(OSError):
            while frame := read_frame(client):
                sent.append((*struct.unpack_from(">hh", frame.ljust(4, b"\0")),))
                broker.sendall(struct.pack(">i", len(frame)) + frame)
        shut(client, broker)

    def _changed(self, frame: bytes, api_key: int, version: int) -> bytes:
        with contextlib.suppress(KwireError):  # of a request that no broker can read
            frame = super()._changed(frame, api_key, version)
        with contextlib.suppress(KwireError), self._lock:
            size = 4 + registry.response_header_version(api_key, version)
            if api_key in self.about:
                return frame[:size] + self._lie(self._rng, frame[size:])
        return frame
