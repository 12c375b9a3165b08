"""Every API in every version, sent by a user without ACLs: the requests of error_paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.chapters.acls import USERS, own_acls
from kwire.conformance.broker.chapters.error_paths import ROWS, Row, address
from kwire.conformance.broker.chapters.tables import api_versions, code_of, released
from kwire.conformance.broker.checks import BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import request
from kwire.conformance.broker.users import stranger

__all__ = ["chapter"]

chapter = Chapter("Every API without ACLs")


def _denied(row: Row, version: int) -> Observe:
    def observe(bench: Bench) -> Any:
        user = stranger(bench)
        values: Mapping[str, Any] = row.values(bench, version)
        own_acls(bench, f"User:{bench.name('missing')}")  # of CreateAcls, if it is allowed
        body = request(row.api, version, **values)
        connection = bench.connection(address(row, bench), user)
        return bench.values(connection.ask(body, version), version, *row.drop)

    return observe


WITHOUT_RIGHTS = frozenset(
    {
        *("RenewDelegationToken", "ExpireDelegationToken", "CreateDelegationToken", "DescribeDelegationToken"),
        *("PushTelemetry", "ListPartitionReassignments", "DescribeCluster", "ListTransactions", "FindCoordinator"),
    }
)
"""APIs whose error says nothing of rights."""

for _row in ROWS:
    for _version in api_versions(_row.api) if _row.api not in WITHOUT_RIGHTS else ():
        chapter.add(
            BrokerCheck(
                id=f"DENIED-{code_of(_row.api)}-{_version:02}",
                chapter=chapter.name,
                title=f"{_row.api} {_version} of a user without ACLs",
                source=f"KIP-11; {_row.api}Response",
                steps=(
                    f"As a user without ACLs, send {_row.api} {_version} with {_row.argument}.",
                    "The response has the format of this version, and the errors and defaults of the release.",
                ),
                observe=_denied(_row, _version),
                uses={_row.api: _version, "AlterUserScramCredentials": 0},
                needs=(*USERS, *(each for each in _row.needs if each != "no authorizer")),
                allowed=_row.allowed,
                **released(_row.api, _version),
            )
        )
