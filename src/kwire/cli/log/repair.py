"""`kwire log repair` and `kwire log index`: repair of logs and rebuilt indexes, in a new directory or in place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, if_interrupted
from kwire.cli.log.directories import bytes_of, open_directory, selected
from kwire.cli.log.selection import Selection
from kwire.cli.options import FormatOption, Partitions, Topics
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.maintenance.repair_mode import Mode
from kwire.pages.escaping import printable
from kwire.pages.quantities import bytes_text, count_text
from kwire.storage.staged_directory import check_empty

if TYPE_CHECKING:
    from kwire.log import LogDirectory
    from kwire.maintenance.quarantine import Quarantine
    from kwire.maintenance.repair_plan import Plan
    from kwire.maintenance.verify import DirectoryFindings

__all__ = ["index", "repair"]


COLUMNS = (
    Column(key="log", heading="LOG"),
    Column(key="file", heading="FILE"),
    Column(key="action", heading="ACTION"),
)

PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="Log directory or partition directory: local path or URL.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Repaired copy; the directory must be empty or missing."),
]
Apply = Annotated[
    bool,
    typer.Option("--apply", help="Repair in place. Originals are moved to PATH.quarantine-N first."),
]


def repair(
    path: PathArgument,
    output: Output = None,
    apply: Apply = False,
    mode: Annotated[
        Mode,
        typer.Option(help="salvage keeps valid batches after damage; truncate cuts there, like Kafka."),
    ] = Mode.SALVAGE,
    topic: Topics = None,
    partition: Partitions = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Repair damaged logs: quarantine damaged bytes, rebuild indexes and checkpoints.

    Without -o or --apply, a dry run that shows the plan. Exit code 1 if there is anything to repair, or damage that
    only another replica or a backup can repair.
    """
    from kwire.maintenance.repair_plan import make_plan

    directory, findings = _verified(path, output, apply, topic, partition)
    return _carry_out(make_plan(directory, findings, mode), output, apply, format)


def index(
    path: PathArgument,
    output: Output = None,
    apply: Apply = False,
    topic: Topics = None,
    partition: Partitions = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Rebuild indexes, producer snapshots and leader epochs that do not match their log.

    The .log files are not changed; logs with damaged batches are left to `repair`. Without -o or --apply, a dry run
    that shows the differences. Exit code 1 if there are any.
    """
    from kwire.maintenance.repair_plan import make_index_plan

    directory, findings = _verified(path, output, apply, topic, partition)
    return _carry_out(make_index_plan(directory, findings), output, apply, format)


def _verified(
    path: str, output: Path | None, apply: bool, topic: list[str] | None, partition: list[int] | None
) -> tuple[LogDirectory, DirectoryFindings]:
    """Check the arguments, and verify the selected logs."""
    if output is not None and apply:
        raise OptionError("--apply and -o are mutually exclusive")
    if output is not None:
        check_empty(str(output))
    if os.path.isfile(path):
        raise OptionError(f"{path}: a file; name its partition directory")
    directory = open_directory(path)
    logs = selected(directory, Selection.parse(topic, partition))
    with terminal.progress("Verifying", bytes_of(logs)) as bar:
        from kwire.maintenance.verify import verify_directory

        chosen = None if len(logs) == len(directory) else logs
        return directory, verify_directory(directory, chosen, advance=bar.advance)


def _carry_out(plan: Plan, output: Path | None, apply: bool, format: Format) -> int:
    """Show the plan; with -o or --apply, run it and verify the result. Returns the exit code."""
    write_rows(list(_rows(plan)), COLUMNS, format)
    for damage in plan.left:
        terminal.warn(printable(f"not repaired: {damage}; {damage.hint}"))
    if output is None and not apply:
        if format is Format.TABLE:
            done = "nothing to repair" if plan.is_empty else "dry run, nothing was written: -o DIR or --apply repairs"
            print(done)
        return FINE if plan.is_empty and not plan.left else FOUND
    from kwire.maintenance.repair import repair_in_place, repair_into

    if output is None and plan.is_empty:
        if format is Format.TABLE:
            print("nothing to repair")
        return FOUND if plan.left else FINE
    total = sum(each.log.size_bytes for each in (plan.touched if output is None else plan.partitions))
    if output is None:
        state = "run the command again to repair the rest; replaced files are in the quarantine directory"
    else:
        state = f"{output} was not written; run the command again"
    with if_interrupted(state), terminal.progress("Repairing", total) as bar:
        if output is None:
            quarantine = repair_in_place(plan, advance=bar.advance)
        else:
            quarantine = repair_into(plan, str(output), advance=bar.advance)
    left = _left(plan, output)
    for line in _open_transactions(plan, output):
        terminal.warn(printable(line))
    if format is Format.TABLE:
        print(printable(_outcome(plan, output, quarantine)))
    for line in left:
        terminal.warn(printable(line))
    return FOUND if left or plan.left else FINE


def _rows(plan: Plan) -> list[Row]:
    rows: list[Row] = [
        {"topic": each.log.topic, "partition": each.log.partition, "log": each.name, "file": file, "action": action}
        for each in plan.touched
        for file, action in each.lines()
    ]
    for name in sorted(plan.checkpoints):
        action = "offsets above the log end are lowered, or the file is rewritten"
        rows.append({"topic": None, "partition": None, "log": None, "file": name, "action": action})
    return rows


def _left(plan: Plan, output: Path | None) -> list[str]:
    """Return the damage in repaired logs that the plan did not announce."""
    from kwire.log import LogDirectory
    from kwire.maintenance.verify import verify_directory

    after = LogDirectory(output if output is not None else plan.directory.url)
    keys = [(each.log.topic, each.log.partition) for each in plan.touched]
    if len(after) == 1 and len(keys) == 1:
        logs = list(after.values())  # a partition directory may have another name now
    else:
        logs = [after[key] for key in keys]
    if not logs:
        return []
    with terminal.progress("Checking the result", bytes_of(logs)) as bar:
        damages = verify_directory(after, logs, advance=bar.advance).damages
    known = {(each.name, each.kind) for each in plan.left}
    lossy = {(each.log.topic, each.log.partition) for each in plan.touched if each.loses_batches}
    # the plan has reported the offsets of quarantined batches
    known |= {(each.name, each.kind) for each in damages if each.kind == "missing records" and each.key in lossy}
    return [f"not repaired: {each}" for each in damages if not each.is_harmless and (each.name, each.kind) not in known]


def _open_transactions(plan: Plan, output: Path | None) -> Iterator[str]:
    """Yield a warning for each log that lost batches, maybe a marker, and has an open transaction now."""
    from kwire.log import LogDirectory

    lossy = [each for each in plan.touched if each.loses_batches]
    if not lossy:
        return
    after = LogDirectory(output if output is not None else plan.directory.url)
    for each in lossy:
        log = after.get((each.log.topic, each.log.partition)) or next(iter(after.values()))
        stable = log.last_stable_offset
        if stable < log.log_end_offset:
            yield (
                f"{each.name}: a transaction is open from offset {stable}, its marker may be lost; read_committed "
                "consumers wait there until its producer, the coordinator or kafka-transactions.sh abort ends it"
            )


def _outcome(plan: Plan, output: Path | None, quarantine: Quarantine) -> str:
    where = plan.directory.url if output is None else str(output)
    n = len(plan.touched)
    logs = "1 log was repaired" if n == 1 else f"{count_text(n)} logs were repaired"
    if not quarantine.entries:
        return f"{where}: {logs}"
    size = bytes_text(sum(entry.size_bytes for entry in quarantine.entries))
    return f"{where}: {logs}; {size} of originals in {quarantine.directory}, listed in its manifest.json"
