"""`kwire txn`: transactional ids and their transactions, as `__transaction_state` has them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli.internal.moment import matching, parse_moment, require_topic, shown_time, tell_problems
from kwire.cli.internal.record_table import write_history
from kwire.cli.log.directories import open_directory
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.quantities import duration_text

if TYPE_CHECKING:
    from kwire.log.internal import TypedRecord

__all__ = ["txn"]


def txn(
    path: Annotated[str, typer.Argument(help="Log directory or a partition of __transaction_state; a path or a URL.")],
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only this transactional id, or those of a pattern (*, ?).")
    ] = None,
    open_only: Annotated[
        bool, typer.Option("--open", help="Only transactions that are not finished: readers of committed data wait.")
    ] = False,
    history: Annotated[bool, typer.Option("--history", help="Every record, in the order of the log.")] = False,
    at_offset: Annotated[
        int | None, typer.Option(metavar="N", help="As after the records below this offset of the partition.")
    ] = None,
    at_time: Annotated[str | None, typer.Option(metavar="TIME", help="As at this time: ISO 8601 (UTC) or ms.")] = None,
    shape: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> int:
    """Show transactional ids and their transactions.

    Exit code 1 if a record cannot be read; the rest is shown still.
    """
    if open_only and history:
        raise OptionError("--open or --history, not both")
    moment = parse_moment(at_offset, at_time)
    directory = open_directory(path)
    from kwire.internal_topics.group_rows import transaction_row
    from kwire.internal_topics.names import TRANSACTIONS_TOPIC
    from kwire.log.internal import read_transaction_records, replay_transactions

    count = require_topic(directory, TRANSACTIONS_TOPIC)
    if at_offset is not None and count > 1 and name is None:
        raise OptionError(f"--at-offset counts in one partition, and there are {count}: name an ID, or a partition")
    if history:
        records = read_transaction_records(directory, at_offset=moment.at_offset, at_time=moment.at_time)
        return write_history(_about(records, name), shape)
    state = replay_transactions(directory, at_offset=moment.at_offset, at_time=moment.at_time)
    chosen = [state.transactions[each] for each in matching(list(state.transactions), name, "transactional id")]
    write_rows((transaction_row(each) for each in chosen if each.is_open or not open_only), COLUMNS, shape)
    return tell_problems(state.problems)


def _about(records: Iterator[TypedRecord], pattern: str | None) -> Iterator[TypedRecord]:
    for record in records:
        about = getattr(record.key, "transactional_id", None)
        if pattern is None or (about is not None and fnmatch.fnmatchcase(about, pattern)):
            yield record


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
