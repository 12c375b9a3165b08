"""One module per API. Each has:

    API_KEY: int                        VERSIONS: (lowest, highest) served
    handle(node, context, request)      -> the response's body; an awaitable of it where the answer has to wait
    refuse(request, code, what)         -> optional: the body that answers a request refused as a whole, for responses
                                           that have no error_code at their top

A module is served because it is in this folder. It is imported with the first request for its API, as a broker is to
start in no time; so the two numbers are read from the text. BrokerError(what, code) leaves a handler when the whole
request is refused.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

from kwire.errors import OptionError

__all__ = ["handler", "handlers", "names", "served"]

NUMBERS = re.compile(r"^API_KEY = (\d+)\nVERSIONS = \((\d+), (\d+)\)$", re.MULTILINE)


def names() -> list[str]:
    """The names of the API modules."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@functools.cache
def served() -> dict[int, tuple[str, int, int]]:
    """Api key -> (module's name, lowest version, highest version).

    Raises OptionError when two modules claim the same key, as one would never be called, or one has no numbers.
    """
    found: dict[int, tuple[str, int, int]] = {}
    for name in names():
        numbers = NUMBERS.search(Path(__path__[0], f"{name}.py").read_text("utf-8"))
        if numbers is None:
            raise OptionError(f"API module {name} does not say API_KEY and VERSIONS")
        api_key, lowest, highest = map(int, numbers.groups())
        if api_key in found:
            raise OptionError(f"api key {api_key} is served by {found[api_key][0]} and {name}")
        found[api_key] = name, lowest, highest
    return dict(sorted(found.items()))


@functools.cache
def handler(api_key: int) -> ModuleType:
    """The module of an API that is served."""
    return importlib.import_module(f"{__name__}.{served()[api_key][0]}")


def handlers() -> dict[int, ModuleType]:
    """All API modules by api key."""
    return {api_key: handler(api_key) for api_key in served()}
