"""An answer that may come later: given once, to whoever asked.

A state machine knows no sockets and no event loop; it is handed a callable and calls it with the response, at once or
when a timer or another member's request makes it possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.messages.join_group_response import JoinGroupResponse
from kwire.messages.sync_group_response import SyncGroupResponse

__all__ = ["Answer", "JoinAnswer", "SyncAnswer"]

R = TypeVar("R")

Answer = Callable[[R], object]
JoinAnswer = Callable[[JoinGroupResponse], object]
SyncAnswer = Callable[[SyncGroupResponse], object]
