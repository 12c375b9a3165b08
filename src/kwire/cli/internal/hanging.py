"""`kwire txn --hanging`: open transactions that no coordinator ends, and their end by --abort."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.internal.moment import shown_time
from kwire.cli.internal.sources import report_requests
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import KwireError, OptionError
from kwire.pages.escaping import printable

if TYPE_CHECKING:
    from kwire.client.admin.transactions import HangingTransaction
    from kwire.client.cluster_logs import ClusterLogs

__all__ = ["hanging"]


def hanging(cluster: ClusterLogs, *, abort: bool, is_sure: bool, options: str, format: Format) -> int:
    """Print the hanging transactions of the cluster's partitions; with abort, end them after asking.

    options: of the connection, for the command that ends a transaction. is_sure: do not ask. Returns the exit code:
    FOUND if transactions hang, or if one of them could not be ended.
    """
    from kwire.client.admin.transactions import abort_transaction, find_hanging

    transactions, requests = find_hanging(cluster.client, cluster)
    write_rows((_row(cluster, each, options) for each in transactions), COLUMNS, format)
    report_requests(requests)
    if not transactions or not abort:
        return FOUND if transactions else FINE
    if not is_sure:
        _ask(len(transactions))
    code = FINE
    for each in transactions:
        name = (
            f"{each.topic}-{each.partition}: transaction of producer {each.producer_id} at offset {each.start_offset}"
        )
        try:
            abort_transaction(cluster.client, each)
        except KwireError as error:
            terminal.warn(printable(str(error)))
            code = FOUND
        else:
            terminal.warn(printable(f"{name} aborted"))
    return code


def _ask(count: int) -> None:
    """Raise OptionError unless the user types y or yes."""
    if not terminal.is_terminal(sys.stdin):
        raise OptionError("--abort asks first, and standard input is no terminal; use --yes")
    sys.stdout.flush()
    print(
        f"Abort {count} transaction{'s' * (count > 1)}? Their records become invisible. [y/N] ", end="", file=sys.stderr
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise OptionError("nothing was aborted")


def _row(cluster: ClusterLogs, each: HangingTransaction, options: str) -> Row:
    url = f"{cluster.address.cluster}/{each.topic}-{each.partition}"
    row: dict[str, Any] = each._asdict()
    row["coordinator_epoch"] = None if each.coordinator_epoch == -1 else each.coordinator_epoch
    return row | {"command": f"kwire txn {shlex.quote(url)}{options} --hanging --abort"}


COLUMNS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="producer_id", heading="PRODUCER", right=True),
    Column(key="producer_epoch", heading="EPOCH", right=True),
    Column(key="coordinator_epoch", heading="COORDINATOR EPOCH", right=True),
    Column(key="start_offset", heading="FROM", right=True),
    Column(key="last_timestamp", heading="LAST TIME", show=shown_time),
    Column(key="transactional_id", heading="TRANSACTIONAL ID"),
    Column(key="command", heading="ENDED BY"),
)
