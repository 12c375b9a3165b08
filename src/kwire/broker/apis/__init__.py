"""One module per API. Each has:

    API_KEY: int                        VERSIONS: (lowest, highest) served
    handle(node, context, request)      -> the response's body; an awaitable of it where the answer has to wait
    refuse(request, code, what)         -> optional: the body that answers a request refused as a whole, for responses
                                           that have no error_code at their top

A module is served because it is in this folder. BrokerError(what, code) leaves a handler when the whole request is
refused.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import ModuleType

from kwire.errors import OptionError

__all__ = ["handlers", "names"]


def names() -> list[str]:
    """The names of the API modules."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@functools.cache
def handlers() -> dict[int, ModuleType]:
    """The API modules by api key. Raises OptionError when two claim the same key: one would never be called."""
    found: dict[int, ModuleType] = {}
    for name in names():
        module = importlib.import_module(f"{__name__}.{name}")
        if module.API_KEY in found:
            raise OptionError(f"api key {module.API_KEY} is served by {found[module.API_KEY].__name__} and {name}")
        found[module.API_KEY] = module
    return dict(sorted(found.items()))
