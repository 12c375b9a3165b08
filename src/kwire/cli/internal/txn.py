"""`kwire txn`: the transactional ids and transactions of `__transaction_state`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli.client_configs import CLUSTER
from kwire.cli.internal.moment import (
    matching,
    matching_records,
    parse_moment,
    shown_time,
    warn_of_problems,
)
from kwire.cli.internal.record_table import write_history
from kwire.cli.internal.sources import InternalSource, open_source
from kwire.cli.options import AtOffset, AtTime, ClientConfigFile, ClientConfigs, FormatOption, History
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.quantities import duration_text

if TYPE_CHECKING:
    from kwire.client import Client
    from kwire.client.admin.requests import AdminRequests
    from kwire.internal_topics.transactions_state import TransactionsState

__all__ = ["txn"]


def txn(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="Log directory or partition of __transaction_state: path or URL; or kafka://HOST:PORT."
        ),
    ],
    name: Annotated[str | None, typer.Argument(metavar="ID", help="Transactional id or pattern (*, ?).")] = None,
    open_only: Annotated[
        bool, typer.Option("--open", help="Only open transactions, which read_committed consumers wait for.")
    ] = False,
    hanging: Annotated[
        bool,
        typer.Option(
            "--hanging",
            help="With kafka://HOST:PORT[/TOPIC[-PARTITION]]: open transactions that no coordinator will end.",
        ),
    ] = False,
    abort: Annotated[bool, typer.Option("--abort", help="With --hanging: end them, after asking.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --abort: do not ask.")] = False,
    history: History = False,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show transactional ids and their transactions.

    Of a cluster, __transaction_state is read if the account has READ on it; otherwise the admin APIs are used.
    --hanging needs READ on the topics, and DESCRIBE on transactional ids; --abort ALTER or CLUSTER_ACTION on the
    cluster. Exit code 1 if a record cannot be read, the rest is shown; or if a transaction hangs.
    """
    if open_only and history:
        raise OptionError("--open and --history are mutually exclusive")
    moment = parse_moment(at_offset, at_time)
    if hanging:
        if name or open_only or history or moment.is_past:
            raise OptionError("--hanging takes no ID, --open, --history, --at-offset or --at-time")
        return _hanging(path, config, config_file, abort=abort, is_sure=yes, format=format)
    if abort or yes:
        raise OptionError(f"{'--abort requires --hanging' if abort else '--yes requires --abort'}")
    from kwire.internal_topics.group_rows import transaction_row
    from kwire.internal_topics.names import TRANSACTIONS_TOPIC

    source = InternalSource(path, TRANSACTIONS_TOPIC, config, config_file)
    source.require(moment, name, "an ID")
    from kwire.log.topics import read_transaction_records, replay_transactions

    if history:
        records = read_transaction_records(source.logs, at_offset=moment.at_offset, at_time=moment.at_time)
        chosen_records = matching_records(records, name, lambda record: getattr(record.key, "transactional_id", None))
        return write_history(chosen_records, format)
    state = source.state(
        lambda: replay_transactions(source.logs, at_offset=moment.at_offset, at_time=moment.at_time), _described, moment
    )
    chosen = [state.transactions[each] for each in matching(list(state.transactions), name, "transactional id")]
    write_rows((transaction_row(each) for each in chosen if each.is_open or not open_only), COLUMNS, format)
    return warn_of_problems(state.problems)


def _described(client: Client) -> tuple[TransactionsState, AdminRequests]:
    from kwire.client.admin.transactions import describe_transactions

    return describe_transactions(client)


def _hanging(
    path: str, config: list[str] | None, config_file: str | None, *, abort: bool, is_sure: bool, format: Format
) -> int:
    from kwire.cli.internal.hanging import hanging

    cluster, _ = open_source(path, config, config_file)
    if cluster is None:
        raise OptionError(f"--hanging requires a path that begins with {CLUSTER}")
    options = "".join(f" -c {shlex.quote(each)}" for each in config or ())
    options += f" --config-file {shlex.quote(config_file)}" if config_file else ""
    return hanging(cluster, abort=abort, is_sure=is_sure, options=options, format=format)


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
