"""Values of secret settings, masked wherever they are printed.

Source: org.apache.kafka.common.config.types.Password.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kwire.errors import OptionError
from kwire.protocol import HIDDEN

__all__ = ["NO_SECRET", "NO_USERS", "Secret", "Users"]


class Secret:
    """A secret string such as a password, available as `text` only."""

    __slots__ = ("text",)

    def __init__(self, text: str | Secret = "") -> None:
        if not isinstance(text, str | Secret):
            raise OptionError("invalid secret: expected a string")
        self.text: str = text if isinstance(text, str) else text.text

    def __repr__(self) -> str:
        return HIDDEN if self.text else "''"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class Users(Mapping[str, str]):
    """Passwords by user name."""

    def __init__(self, users: Mapping[str, str] | None = None) -> None:
        if users is not None and not isinstance(users, Mapping):
            raise OptionError("invalid users: expected a mapping of names to passwords")
        self._users = dict(users or {})
        for name, password in self._users.items():
            if not (isinstance(name, str) and name and isinstance(password, str) and password):
                raise OptionError("invalid users: names and passwords must be non-empty strings")

    def __getitem__(self, name: str) -> str:
        return self._users[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._users)

    def __len__(self) -> int:
        return len(self._users)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {HIDDEN}' for name in self._users)}}}"

    def __hash__(self) -> int:
        return hash(frozenset(self._users.items()))


NO_SECRET, NO_USERS = Secret(), Users()
