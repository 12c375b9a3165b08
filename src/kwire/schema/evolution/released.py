"""The released versions that two definitions share, in blocks, and the form of a field in each block.

A block is a range of versions that are alike in both definitions, so one comparison is enough. A set of blocks is an
int with one bit per block.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.schema.model import Field, Message, Struct, blocks
from kwire.schema.versions import Versions


class Released:
    """The shared released versions of two definitions. frozen: the range; blocks: the same range in pieces."""

    def __init__(self, frozen: Versions, *messages: Message) -> None:
        self.frozen = frozen
        self.blocks = tuple(blocks(frozen, *messages))
        self.all = (1 << len(self.blocks)) - 1
        self._masks: dict[Versions, int] = {}

    def mask(self, versions: Versions) -> int:
        """Return the blocks in versions."""
        mask = self._masks.get(versions)
        if mask is None:
            mask = sum(1 << i for i, block in enumerate(self.blocks) if block.lowest in versions)
            self._masks[versions] = mask
        return mask

    def split(self, mask: int) -> Iterator[tuple[int, int]]:
        """Yield (mask of one block, one of its versions) for each block of mask."""
        for i, block in enumerate(self.blocks):
            if mask >> i & 1:
                yield 1 << i, block.lowest

    def below(self, mask: int, version: int) -> int:
        """Return the blocks of mask below a version."""
        return mask & self.mask(Versions(0, version - 1))

    def text(self, mask: int) -> str:
        """Format the versions of mask as ranges: `0-2, 5`."""
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
        """Return the blocks in which the field is positional."""
        return self.mask(field.versions) & ~self.tagged(field)

    def tagged(self, field: Field) -> int:
        """Return the blocks in which the field is tagged."""
        return 0 if field.tag is None else self.mask(field.versions) & self.mask(field.tagged)

    def flexible(self, message: Message, field: Field) -> int:
        """Return the blocks in which the field has its compact form."""
        return self.mask(message.flexible if field.flexible is None else field.flexible)

    def encodings_differ(self, old: Field, new: Field, mask: int) -> int:
        """Return the blocks of mask in which two primitive fields have different encodings."""
        if not (old.encodings or new.encodings) and old.type == new.type:
            return 0
        return sum(bit for bit, version in self.split(mask) if old.wire_type(version) != new.wire_type(version))


def struct_paths(message: Message) -> dict[Struct, str]:
    """Return every struct of a message with the path of its first use; its name if it is not used."""
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
