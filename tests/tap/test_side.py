"""One side of a connection through the tap."""

from __future__ import annotations

import asyncio
import socket

from kwire.tap.side import Side


def test_a_side_that_has_sent_everything_after_its_close_can_be_aborted() -> None:
    """The tap aborts each side ten seconds after its close; asyncio failed if its buffer had not been empty."""

    def read_all(peer: socket.socket) -> int:
        return sum(len(data) for data in iter(lambda: peer.recv(1 << 20), b""))

    async def closed() -> int:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Exception | None] = loop.create_future()
        side = Side(lambda data: None, ended.set_result)
        ours, theirs = socket.socketpair()
        with theirs:
            await loop.create_connection(lambda: side, sock=ours)
            side.write([bytes(8 << 20)])
            side.close()
            received = await loop.run_in_executor(None, read_all, theirs)
            assert await ended is None
            side.abort()
        return received

    assert asyncio.run(closed()) == 8 << 20
