"""Message classes of any definitions: the jars of another Kafka release, or a folder.

kafka = registry.load("kafka-clients-4.0.1.jar", "kafka-metadata-4.0.1.jar")
kafka.get("FetchRequest"), kafka.request(1), kafka.find("metadata", 3), kafka.names()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kwire.errors import OptionError, UnsupportedVersion, did_you_mean
from kwire.messages.base import Message
from kwire.messages.runtime import message_class
from kwire.schema.model import Message as MessageSpec


class Loaded:
    """The messages of some definitions by name, and by kind and key. Classes are compiled on demand."""

    def __init__(self, specs: Mapping[str, MessageSpec]) -> None:
        self._specs = {name: specs[name] for name in sorted(specs)}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """Return the names of the messages that have a version, sorted."""
        return [name for name, spec in self._specs.items() if spec.valid]

    def get(self, name: str) -> type[Message]:
        """Return the class of a message. Raises OptionError for an unknown name."""
        if name not in self._specs:
            raise OptionError(f"unknown message {name!r}{did_you_mean(name, self._specs)}")
        return message_class(self._specs[name])

    def find(self, kind: str, api_key: int) -> type[Message]:
        """Find the message of a kind with a key. Raises UnsupportedVersion if there is none, OptionError for several."""
        names = [spec.name for spec in self._specs.values() if (spec.kind, spec.api_key) == (kind, api_key)]
        if len(names) > 1:
            raise OptionError(f"{kind} {api_key} is the key of {', '.join(names)}; use get with one of the names")
        if not names:
            raise UnsupportedVersion(f"no {kind} with key {api_key}")
        return self.get(names[0])

    def request(self, api_key: int) -> type[Message]:
        """Return the request with an API key. Raises UnsupportedVersion for an unknown one."""
        return self.find("request", api_key)

    def response(self, api_key: int) -> type[Message]:
        """Return the response with an API key. Raises UnsupportedVersion for an unknown one."""
        return self.find("response", api_key)


def load_sources(sources: Sequence[str]) -> Loaded:
    """The definitions of jars, folders and files; see `registry.load`."""
    from kwire.schema.evolution.sources import read_source

    specs: dict[str, MessageSpec] = {}
    for source in sources:
        for name, definition in read_source(str(source), dialect="kafka").definitions.items():
            known = specs.setdefault(name, definition.message)
            if known is not definition.message:
                raise OptionError(f"{definition.file}: message {name} is already defined in {known.file}")
    return Loaded(specs)
