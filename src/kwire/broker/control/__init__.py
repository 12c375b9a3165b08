"""Control of a broker over HTTP, for tests in any language: faults, requests, topics, groups, nodes, the clock.

server     ControlServer: HTTP in threads of its own, for programs on this machine
routes     what can be asked for, and the broker's methods that do it
openapi    the description at /openapi.json
"""

from __future__ import annotations

from kwire.broker.control.server import ControlServer

__all__ = ["ControlServer"]
