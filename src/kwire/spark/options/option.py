"""One option of a source or sink: how its value is parsed, and its row in the documentation. Standard library only.

A source lists its options in a tuple. Its parser reads values through them, refuses names that are not in the tuple,
and the option tables of docs/ are generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from kwire.errors import OptionError, did_you_mean
from kwire.spark.options.values import is_storage

__all__ = ["Option", "QueryType", "check_names"]

T_co = TypeVar("T_co", covariant=True)

QueryType = Literal["batch", "streaming", "streaming and batch"]


@dataclass(frozen=True, kw_only=True)  # Option[int](...) sets an attribute, which frozen classes with slots cannot take
class Option(Generic[T_co]):
    """An option by name.

    parse(name, text): the value; raises OptionError. default: the value without the option.
    value, shown_default, query, meaning: cells of the documentation's table, in Markdown.
    """

    name: str
    parse: Callable[[str, str], T_co]
    default: T_co
    value: str
    meaning: str
    shown_default: str = ""
    query: QueryType = "streaming and batch"

    def of(self, given: Mapping[str, str]) -> T_co:
        """The value among a query's options. given: keys in lower case. Raises OptionError."""
        text = given.get(self.name.lower())
        return self.default if text is None else self.parse(self.name, text)


def check_names(
    given: Mapping[str, str],
    options: Iterable[Option[object]],
    unsupported: Mapping[str, str],
    *,
    source: str,
    page: str,
    passed_on: Callable[[str], bool] = is_storage,
) -> None:
    """Raise OptionError for options that the source does not have: a typing error must not change a result silently.

    unsupported: known names, with the reason. passed_on(key): whether an option goes to a file system or a client.
    """
    names = [option.name for option in options]
    known = {name.lower() for name in names}
    reasons = {name.lower(): (name, reason) for name, reason in unsupported.items()}
    for key in given:
        if key in reasons and key not in known:
            name, reason = reasons[key]
            raise OptionError(f"Option '{name}' is not supported: {reason}")
        if key not in known and not passed_on(key):
            hint = did_you_mean(key, [*names, *unsupported])
            raise OptionError(f"Unknown option '{key}'{hint}; {page} lists the options of {source}")
