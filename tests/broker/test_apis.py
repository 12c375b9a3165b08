"""The table of served APIs agrees with the handler modules, their signatures and their docstrings."""

from __future__ import annotations

import inspect
import pkgutil
import re
import typing

import pytest

from kwire.broker import apis
from kwire.broker.apis import SERVED, Api
from kwire.messages import registry

HEAD = re.compile(r"(\w+) \(api key (\d+)\), versions? (\d+)(?: (?:to|and) (\d+))?: ")
BY_MODULE = pytest.mark.parametrize(("api_key", "api"), SERVED.items(), ids=[api.module for api in SERVED.values()])


def test_every_handler_module_is_served_under_one_api_key() -> None:
    modules = [each.name for each in pkgutil.iter_modules(apis.__path__) if not each.ispkg]
    assert sorted(api.module for api in SERVED.values()) == modules
    assert list(SERVED) == sorted(SERVED)


@BY_MODULE
def test_the_docstring_of_a_handler_names_its_api_and_versions(api_key: int, api: Api) -> None:
    head = HEAD.match(inspect.getdoc(apis.handler(api_key)) or "")
    assert head is not None
    name = registry.request(api_key).__name__.removesuffix("Request")
    lowest, highest = int(head[3]), int(head[4] or head[3])
    assert (head[1], int(head[2]), lowest, highest) == (name, api_key, api.lowest, api.highest)


@BY_MODULE
def test_a_handler_takes_its_request_class_and_returns_its_response_class(api_key: int, api: Api) -> None:
    hints = typing.get_type_hints(apis.handler(api_key).handle)
    accepted = {hints["request"], *typing.get_args(hints["request"])}
    returned = {hints["return"], *typing.get_args(hints["return"])}
    assert registry.request(api_key) in accepted
    assert registry.response(api_key) in returned


@BY_MODULE
def test_served_versions_exist_in_kafka(api_key: int, api: Api) -> None:
    for versions in (registry.request(api_key).VALID_VERSIONS, registry.response(api_key).VALID_VERSIONS):
        assert versions.lowest <= api.lowest <= api.highest <= versions.highest
