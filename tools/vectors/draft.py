"""A case before Kafka has made or judged it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kwire.conformance.vectors.case import Encoding
from tools.vectors.releases import JUDGES

__all__ = ["Draft"]


@dataclass(slots=True, kw_only=True)
class Draft:
    """What a case is about, and how to get its bytes.

    task: for the classes of `maker`, which write the bytes; None if `data` has them already: an edit of bytes that
    those classes wrote. judge: the task that reads them, without the bytes. judges: the releases that can read them.
    forbidden: what the protocol says against bytes that Kafka might read. is_spare: dropped once its type and version
    have enough.
    """

    chapter: str
    type: str
    version: int
    case: str
    since: str
    until: str | None
    maker: str
    judge: dict[str, Any]
    judges: tuple[str, ...] = JUDGES
    task: dict[str, Any] | None = None
    data: bytes = b""
    encoding: Encoding = "canonical"
    reason: str
    source: str = ""
    forbidden: str = ""
    is_spare: bool = False
    result: dict[str, Any] = field(default_factory=dict)
    """What the maker read back: value and bytes."""
    suffix: str = ""
    """Distinguishes later layouts of the same version: `@3.9`."""

    @property
    def id(self) -> str:
        """The id of the case."""
        return f"{self.chapter}/{self.type}/{self.version}{self.suffix}/{self.case}"
