"""Tags used by former definitions.

A tag is reserved by its first use: an old peer or record may still contain it. The old definition has its own tags;
tags of fields removed earlier are in older definitions, which are read for their tags only.
Source: KIP-482, "Tagged Fields and Version Compatibility".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kwire.schema.model import Field, Message


@dataclass(frozen=True, slots=True)
class TagUse:
    """A use of a tag. source: the definition with it, ignored in comparisons."""

    name: str
    type: str
    nullable: bool
    source: str = field(default="", compare=False)

    @classmethod
    def of(cls, field: Field, source: str = "") -> TagUse:
        """Return the use of a tagged field's tag. source: the definition it is from, for messages."""
        return cls(field.name, field.type_text, bool(field.nullable.intersect(field.tagged)), source)


class UsedTags:
    """The tags in older definitions of one message, by struct; the name of the message's own struct is empty here."""

    def __init__(self, history: Iterable[Message]) -> None:
        self.used: dict[tuple[str, int], dict[TagUse, None]] = {}
        for message in history:
            for struct in (message.struct, *message.structs):
                name = "" if struct is message.struct else struct.name
                for item in struct.fields:
                    if item.tag is not None:
                        uses = self.used.setdefault((name, item.tag), {})
                        uses.setdefault(TagUse.of(item, message.file or "an older definition"))

    def uses(self, structs: Iterable[str], tag: int) -> Iterator[TagUse]:
        """Yield the uses of the tag in a struct, under any of its names."""
        for name in dict.fromkeys(structs):
            yield from self.used.get((name, tag), {})
