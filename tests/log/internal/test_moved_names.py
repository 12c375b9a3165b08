"""Names that moved from kwire.log.internal to kwire.internal_topics."""

from __future__ import annotations

import importlib

import pytest

from kwire.log import internal


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in internal.MOVED.items() for name in names]
)
def test_a_moved_name_works_and_warns(module: str, name: str) -> None:
    new = internal.RENAMED.get(name, name)
    with pytest.warns(DeprecationWarning, match=f"has moved to kwire.internal_topics.{module}.{new}"):
        found = getattr(internal, name)
    assert found is getattr(importlib.import_module(f"kwire.internal_topics.{module}"), new)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        internal.nothing  # noqa: B018
