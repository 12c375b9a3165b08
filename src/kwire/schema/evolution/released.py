"""The released versions that two definitions share, cut into blocks, and what a field is on the wire in each.

All versions of a block look the same in both definitions, so each block is compared once: a message may have 32,767
versions, and a real one has a handful of blocks. A set of blocks is an int with one bit a block.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.schema.model import Field, Message, Struct
from kwire.schema.versions import NONE, Versions
from kwire.schema.wire_forms import encoding


class Released:
    """The shared released versions of two definitions. frozen: the range; blocks: the same range in pieces."""

    def __init__(self, frozen: Versions, *messages: Message) -> None:
        self.frozen = frozen
        self.blocks = _blocks(frozen, messages)
        self.all = (1 << len(self.blocks)) - 1
        self._masks: dict[Versions, int] = {}

    def mask(self, versions: Versions) -> int:
        """The blocks in versions."""
        mask = self._masks.get(versions)
        if mask is None:
            mask = sum(1 << i for i, block in enumerate(self.blocks) if block.lowest in versions)
            self._masks[versions] = mask
        return mask

    def split(self, mask: int) -> Iterator[tuple[int, int]]:
        """(mask of one block, one of its versions) for each block of mask."""
        for i, block in enumerate(self.blocks):
            if mask >> i & 1:
                yield 1 << i, block.lowest

    def below(self, mask: int, version: int) -> int:
        """The blocks of mask that lie below a version."""
        return mask & self.mask(Versions(0, version - 1))

    def text(self, mask: int) -> str:
        """The versions of mask as ranges: `0-2, 5`."""
        runs: list[Versions] = []
        for i, block in enumerate(self.blocks):
            if not mask >> i & 1:
                continue
            if runs and runs[-1].highest + 1 == block.lowest:
                runs[-1] = Versions(runs[-1].lowest, block.highest)
            else:
                runs.append(block)
        return ", ".join(map(str, runs))

    def positional(self, field: Field) -> int:
        """The blocks in which the field has a place among the positional ones."""
        return self.mask(field.versions) & ~self.tagged(field)

    def tagged(self, field: Field) -> int:
        """The blocks in which the field is tagged."""
        return 0 if field.tag is None else self.mask(field.versions) & self.mask(field.tagged)

    def flexible(self, message: Message, field: Field) -> int:
        """The blocks in which the field has its compact form."""
        return self.mask(message.flexible if field.flexible is None else field.flexible)

    def encodings_differ(self, old: Field, new: Field, mask: int) -> int:
        """The blocks of mask in which two primitive fields are different bytes."""
        if not (old.encodings or new.encodings) and old.type == new.type:
            return 0
        return sum(bit for bit, version in self.split(mask) if encoding(old, version) != encoding(new, version))


def struct_paths(message: Message) -> dict[Struct, str]:
    """Every struct of a message with the path of the field that uses it first; its name if nothing uses it."""
    paths: dict[Struct, str] = {}
    waiting = [(message.struct, message.name)]
    while waiting:
        struct, path = waiting.pop(0)
        if struct not in paths:
            paths[struct] = path
            waiting += [(f.struct, f"{path}.{f.name}") for f in struct.fields if f.struct is not None]
    for struct in message.structs:
        paths.setdefault(struct, f"{message.name}.{struct.name}")
    return paths


def _blocks(frozen: Versions, messages: tuple[Message, ...]) -> tuple[Versions, ...]:
    if not frozen:
        return ()
    starts = {frozen.lowest}
    for message in messages:
        for versions in _ranges(message):
            if versions:
                starts |= {start for start in (versions.lowest, versions.highest + 1) if start in frozen}
    ends = sorted(starts)[1:]
    return tuple(Versions(a, b - 1) for a, b in zip(sorted(starts), [*ends, frozen.highest + 1], strict=True))


def _ranges(message: Message) -> Iterator[Versions]:
    yield message.flexible
    yield Versions(0, 0)  # ControlledShutdown's first version has a separate header
    for versions, _ in message.header_versions:
        yield versions
    for struct in (message.struct, *message.structs):
        yield struct.versions
        for field in struct.fields:
            yield from (field.versions, field.nullable, field.tagged, field.flexible or NONE)
            for versions, _ in field.encodings:
                yield versions
