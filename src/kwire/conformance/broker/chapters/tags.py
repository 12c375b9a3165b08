"""Unknown tagged fields, and clients from the future: every API in its flexible versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.chapters.error_paths import ROWS, Row, address
from kwire.conformance.broker.chapters.tables import api_versions, code_of, released
from kwire.conformance.broker.checks import BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import request
from kwire.messages import registry

__all__ = ["chapter"]

chapter = Chapter("Unknown tagged fields")
TAGS = [(7000, b""), (7001, b"from the future"), (2_000_000_000, bytes(300))]


def _observe(row: Row, version: int) -> Observe:
    def observe(bench: Bench) -> Any:
        values: Mapping[str, Any] = row.values(bench, version)
        body: Any = request(row.api, version, **values, unknown_tagged_fields=list(TAGS))
        connection = bench.connection(address(row, bench))

        def ask() -> Any:
            connection.send(body, version, header_tags=TAGS)
            return bench.values(connection.receive(), version, *row.drop)

        return bench.loaded(ask)

    return observe


for _row in ROWS:
    _flexible = registry.get(f"{_row.api}Request").FLEXIBLE_VERSIONS
    for _version in api_versions(_row.api):
        if _version in _flexible:
            chapter.add(
                BrokerCheck(
                    id=f"TAGS-{code_of(_row.api)}-{_version:02}",
                    chapter=chapter.name,
                    title=f"{_row.api} {_version} with unknown tagged fields",
                    source="KIP-482",
                    steps=(
                        f"Send {_row.api} {_version} with {_row.argument}, and three unknown tagged fields in both its "
                        "header and its body.",
                        "The response is that of a request without them.",
                    ),
                    observe=_observe(_row, _version),
                    uses={_row.api: _version},
                    needs=_row.needs,
                    **released(_row.api, _version),
                )
            )
