"""Which Kafka releases have a version of a message, and which of them makes its cases.

Two releases have the same layout of a version if its bytes mean the same: types, nullability, tags, defaults.
Names may differ; those of a case are its maker's. The cases of a layout are made by the newest of three releases that
has it, else by the newest of all. Layouts that were gone before 2.8 are left out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from kwire.messages import registry
from kwire.schema.model import Field, Message, Struct

JUDGES = ("2.8.2", "3.9.1", "4.4.0")
"""The releases whose classes make cases and judge them, oldest first."""

OLDEST_WITH_JSON = (2, 7)
"""The first minor release whose jars have converters to and from JSON."""

OLDEST_LAYOUT = (2, 8)

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """A version of a message as some releases define it. spec: that of `maker`. releases: oldest first."""

    name: str
    version: int
    spec: Message
    maker: str
    releases: tuple[str, ...]
    is_first: bool

    @property
    def since(self) -> str:
        """The first release with the layout."""
        return self.releases[0]

    @property
    def until(self) -> str | None:
        """The last release with the layout; None if that is the newest of all."""
        return None if self.releases[-1] == registry.RELEASES[0] else self.releases[-1]

    @property
    def judges(self) -> tuple[str, ...]:
        """The three releases that have the layout, and the maker."""
        return tuple(release for release in self.releases if release in JUDGES or release == self.maker)

    @property
    def suffix(self) -> str:
        """What the ids of a later layout of the same version have after it: `@3.9`."""
        return "" if self.is_first else f"@{'.'.join(self.since.split('.')[:2])}"

    @property
    def is_flexible(self) -> bool:
        """Whether structs have tag sections."""
        return self.version in self.spec.flexible


@functools.cache
def layouts() -> tuple[Layout, ...]:
    """Return every layout of every version of every message, by name and version."""
    return tuple(_layouts())


def _layouts() -> Iterator[Layout]:
    oldest_first = list(reversed(registry.RELEASES))
    for name in registry.names():
        groups: dict[tuple[int, Signature], list[str]] = {}
        specs: dict[str, Message] = {}
        for release in oldest_first:
            if release not in registry.releases(name):
                continue
            spec = specs[release] = registry.get(name, kafka=release).SPEC
            for version in range(spec.valid.lowest, spec.valid.highest + 1):
                key = version, (version in spec.flexible, *_signature(spec, spec.struct, version))
                groups.setdefault(key, []).append(release)
        firsts: set[int] = set()
        for (version, _), releases in sorted(
            groups.items(), key=lambda item: (item[0][0], oldest_first.index(item[1][0]))
        ):
            able = [each for each in releases if _minor(each) >= OLDEST_WITH_JSON]
            judges = [each for each in able if each in JUDGES and _has_converters(each, specs[each])]
            if able and _minor(releases[-1]) >= OLDEST_LAYOUT:
                maker = (judges or able)[-1]
                yield Layout(
                    name=name,
                    version=version,
                    spec=specs[maker],
                    maker=maker,
                    releases=tuple(releases),
                    is_first=version not in firsts,
                )
                firsts.add(version)


def _minor(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")[:2]))


def _has_converters(release: str, spec: Message) -> bool:
    """Return whether the release can make values: the coordinators' classes of 2.8 have no converters."""
    return not (release == "2.8.2" and spec.name in BROKERS_OWN)


BROKERS_OWN = frozenset(
    {"GroupMetadataKey", "GroupMetadataValue", "OffsetCommitKey", "OffsetCommitValue", "TransactionLogKey"}
    | {"TransactionLogValue"}
)
"""Messages that were part of the broker's jar (core) up to 3.8, without converters."""


def _signature(message: Message, struct: Struct, version: int) -> Signature:
    return tuple(_field(message, field, version) for field in struct.fields if version in field.versions)


def _field(message: Message, field: Field, version: int) -> Signature:
    inner = _signature(message, field.struct, version) if field.struct else field.type
    tag = field.tag if version in field.tagged else None
    default = repr(field.default) if tag is not None else None
    flexible = field.is_flexible(message, version)
    return field.is_array, inner, version in field.nullable, tag, default, flexible
