"""The prompt of `kwire sql`: statements end with `;`, commands begin with a backslash. History and completion."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.command import FINE
from kwire.cli.sql.output import OutputFormat, write_result
from kwire.cli.sql.running import run_interruptible
from kwire.errors import KwireError, OptionError, counted
from kwire.pages.escaping import printable

if TYPE_CHECKING:
    from kwire.sql.session import Session

__all__ = ["run_prompt"]

HELP = """\\d           tables and views
\\d TABLE     columns of a table or view
\\q           leave, as Ctrl-D does
A statement ends with ; and may have several lines. Ctrl-C stops it."""
WORDS = "SELECT FROM WHERE GROUP BY ORDER LIMIT HAVING JOIN USING COUNT(*) DISTINCT DESC INTERVAL NOW() AND OR NOT NULL"
COLUMNS = ("partition", '"offset"', "timestamp", "key", "value", "headers", "topic")


def run_prompt(session: Session, format: OutputFormat) -> int:
    """Read statements from the terminal and run them, until it ends."""
    _say(f"{counted(sum(len(each.tables) for each in session.attached), 'table')}; \\d lists them, \\? helps")
    with _line_editing(session):
        for statement in _statements():
            try:
                if statement.startswith("\\"):
                    if _command(session, statement):
                        break
                else:
                    _run(session, statement, format)
            except KwireError as error:
                terminal.warn(printable(str(error)))
            except KeyboardInterrupt as interrupt:
                _say(": ".join(("interrupted", *map(str, interrupt.args))))
    return FINE


def _run(session: Session, text: str, format: OutputFormat) -> None:
    def run() -> None:
        for statement in session.statements(text):
            result = session.run(statement)
            if result is not None:
                write_result(result, format)
                sys.stdout.flush()

    run_interruptible(session, run)


def _statements() -> Iterator[str]:
    """Yield statements and commands. Ctrl-C drops what was typed; Ctrl-D ends."""
    lines: list[str] = []
    while True:
        try:
            line = input("...> " if lines else "sql> ")
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            lines.clear()
            continue
        if not lines and line.strip().startswith("\\"):
            yield line.strip()
        elif line.strip() or lines:
            lines.append(line)
            if line.rstrip().endswith(";"):
                yield "\n".join(lines)
                lines.clear()


def _command(session: Session, text: str) -> bool:
    """Run a command that begins with a backslash; return whether it ends the prompt. Raises OptionError."""
    name, _, argument = text.partition(" ")
    if name == "\\q":
        return True
    if name == "\\?":
        _say(HELP)
    elif name == "\\d" and argument.strip():
        _run(session, f"DESCRIBE {argument.strip().removesuffix(';')}", OutputFormat.TABLE)
    elif name == "\\d":
        for attached in session.attached:
            for table in attached.tables:
                print(attached.qualified(table))
        for table in session.own_tables:
            print(table)
    else:
        raise OptionError(f"unknown command '{name}'; \\? lists them")
    return False


@contextlib.contextmanager
def _line_editing(session: Session) -> Iterator[None]:
    """Edit lines with readline, where Python has it: completion of names, and a history that is kept."""
    try:
        import readline
    except ImportError:
        yield
        return
    history = _history_file()
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    names = [*WORDS.split(), *COLUMNS, *(each.qualified(table) for each in session.attached for table in each.tables)]

    def complete(text: str, state: int) -> str | None:
        matches = [name for name in names if name.lower().strip('"').startswith(text.lower().strip('"'))]
        return matches[state] if state < len(matches) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,()=<>;")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        with contextlib.suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(1000)
            readline.write_history_file(history)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kwire" / "sql_history"


def _say(text: str) -> None:
    print(text, file=sys.stderr)
