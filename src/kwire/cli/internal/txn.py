"""`kwire txn`: the transactional ids and transactions of `__transaction_state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli.internal.moment import (
    matching,
    matching_records,
    parse_moment,
    require_topic,
    shown_time,
    warn_of_problems,
)
from kwire.cli.internal.record_table import write_history
from kwire.cli.log.directories import open_directory
from kwire.cli.options import AtOffset, AtTime, FormatOption, History
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.quantities import duration_text

if TYPE_CHECKING:
    pass

__all__ = ["txn"]


def txn(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="Log directory or partition of __transaction_state: path or URL."),
    ],
    name: Annotated[str | None, typer.Argument(metavar="ID", help="Transactional id or pattern (*, ?).")] = None,
    open_only: Annotated[
        bool, typer.Option("--open", help="Only open transactions, which read_committed consumers wait for.")
    ] = False,
    history: History = False,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show transactional ids and their transactions.

    Exit code 1 if a record cannot be read; the rest is shown.
    """
    if open_only and history:
        raise OptionError("--open and --history are mutually exclusive")
    moment = parse_moment(at_offset, at_time)
    directory = open_directory(path)
    from kwire.internal_topics.group_rows import transaction_row
    from kwire.internal_topics.names import TRANSACTIONS_TOPIC
    from kwire.log.internal import read_transaction_records, replay_transactions

    count = require_topic(directory, TRANSACTIONS_TOPIC)
    if at_offset is not None and count > 1 and name is None:
        raise OptionError(f"--at-offset applies to one partition of {count}; name an ID or a partition directory")
    if history:
        records = read_transaction_records(directory, at_offset=moment.at_offset, at_time=moment.at_time)
        chosen_records = matching_records(records, name, lambda record: getattr(record.key, "transactional_id", None))
        return write_history(chosen_records, format)
    state = replay_transactions(directory, at_offset=moment.at_offset, at_time=moment.at_time)
    chosen = [state.transactions[each] for each in matching(list(state.transactions), name, "transactional id")]
    write_rows((transaction_row(each) for each in chosen if each.is_open or not open_only), COLUMNS, format)
    return warn_of_problems(state.problems)


def _partitions(row: Row) -> str | None:
    return " ".join(f"{each['topic']}:{','.join(map(str, each['partitions']))}" for each in row["partitions"]) or None


COLUMNS = (
    Column(key="transactional_id", heading="TRANSACTIONAL ID"),
    Column(key="state", heading="STATE"),
    Column(key="producer_id", heading="PRODUCER", right=True),
    Column(key="producer_epoch", heading="EPOCH", right=True),
    Column(key="timeout_ms", heading="TIMEOUT", show=duration_text, right=True),
    Column(key="start_timestamp", heading="STARTED", show=shown_time),
    Column(key="last_update_timestamp", heading="LAST UPDATE", show=shown_time),
    Column(pick=_partitions, heading="PARTITIONS"),
)
