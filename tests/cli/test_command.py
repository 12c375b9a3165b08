"""Help, version, exit codes, pipes and terminals of commands."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import typer
from tests.cli.crafted import segment
from tests.pages.test_escaping import on_terminal
from tests.records.building import batch, record
from tests.waiting import HANG_S

import kwire as package
from kwire import native
from kwire.cli.log import ls
from kwire.cli.main import COMMANDS, build


def test_the_version_names_the_package_and_the_level_of_its_kernels(kwire: Callable) -> None:
    assert kwire("--version").out == f"kwire {package.__version__} (kernels: {native.LEVEL})\n"


@pytest.mark.parametrize("module", ["kwire", "kwire.cli"])
def test_the_command_runs_as_a_module(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "log"], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: kwire log [OPTIONS] COMMAND") or "kwire log" in done.stderr


@pytest.mark.parametrize("path", ["", "  "])
def test_an_empty_path_of_an_unset_variable_is_seen_in_the_error(kwire: Callable, path: str) -> None:
    assert kwire("log", "ls", path).err == f"kwire: {path!r}: no such file or directory\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "{long}", "--version", "4", "--hex", "00"),
        ("log", "verify", "{data}", "--topic", "txn", "--report", "{long}"),
        ("log", "repair", "{data}", "--topic", "txn", "-o", "{long}"),
        ("schema", "check", "{long}"),
    ],
    ids=" ".join,
)
def test_a_name_that_is_too_long_is_an_error(
    kwire: Callable, kafka_logs: dict[str, Path], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Up to Python 3.13 also Path.is_file and Path.exists raise OSError for one."""
    places = {"data": str(kafka_logs["modern"] / "data"), "long": str(tmp_path / ("x" * 256))}
    result = kwire(*(each.format(**places) for each in arguments))
    assert (result.code, result.out) == (2, "")
    assert "File name too long" in result.err
    assert "x" * 256 in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("log", "nonsense"),
        ("log", "ls"),
        ("log", "ls", "/nowhere/at/all"),
        ("log", "ls", "{data}", "--format", "xml"),
        ("log", "ls", "{data}", "--sort", "colour"),
        ("log", "ls", "{data}", "--topic", "nosuch"),
        ("log", "ls", "{empty}"),
        ("log", "ls", "nosuchscheme://bucket/data"),
        ("log", "dump", "{data}", "--offsets", "5:3"),
        ("log", "dump", "{data}", "--offsets", "x:"),
        ("log", "dump", "{data}", "--offsets", ""),
        ("log", "dump", "{data}", "--since", "yesterday"),
        ("log", "dump", "{data}", "--since", "--5"),
        ("log", "dump", "{data}", "--kafka-version", "3.9"),
        ("log", "dump", "{data}", "--like-kafka", "--kafka-version", "0.8"),
        ("log", "dump", "{data}", "--like-kafka", "--format", "json"),
        ("log", "dump", "{data}/orders-0/leader-epoch-checkpoint"),
        ("log", "report", "{data}"),
        ("log", "report", "{data}", "-o", "/nowhere/at/all/report.html"),
        ("log", "report", "{data}", "-o", "{empty}"),
        ("log", "export", "{data}", "-o", "-"),
        ("log", "pull", "kafka://localhost:1", "-o", "-"),
        ("log", "convert", "{data}", "--codec", "gzip", "-o", "-"),
        ("log", "compact", "{data}", "--output", "-"),
        ("log", "report", "{data}", "-o-"),
        ("log", "export", "{data}", "-o", "{file}/out"),
        ("log", "export", "{data}", "-o", "{file}/out.parquet"),
        ("log", "convert", "{data}", "--codec", "gzip", "-o", "{file}/out"),
        ("log", "compact", "{data}", "--topic", "orders", "-o", "{file}/new/out"),
        ("log", "repair", "{data}", "-o", "{file}/new/out"),
        ("log", "index", "{data}", "-o", "{file}/new/out"),
        ("capture", "/nowhere/at/all.pcap"),
        ("capture", "{file}", "/nowhere/at/all.pcap"),
    ],
    ids=" ".join,
)
def test_wrong_usage_has_exit_code_2_and_one_message(
    arguments: tuple[str, ...], kwire: Callable, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    data = kafka_logs["modern"] / "data"
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    places = {"data": data, "empty": tmp_path / "empty", "file": tmp_path / "file"}
    result = kwire(*(argument.format(**places) for argument in arguments))
    assert result.code == 2
    assert result.err.strip()
    assert "Traceback" not in result.err
    assert not result.out


def test_a_group_without_a_command_shows_its_help(kwire: Callable) -> None:
    result = kwire("log")
    assert "Commands:" in result.out + result.err


def spawn(*arguments: str | Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "kwire.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("options", [["--deep"], ["--deep", "--format", "jsonl"], ["--deep", "--like-kafka"]])
def test_a_closed_pipe_ends_the_command_quietly(options: list[str], kafka_logs: dict[str, Path]) -> None:
    with spawn("log", "dump", kafka_logs["modern"] / "data" / "orders-0", *options) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=HANG_S) == 141


HEAVY = ("asyncio", "cryptography", "fsspec", "numpy", "pyarrow", "pyspark", "rich", "ssl", "kwire.broker")
READING = ("cramjam", "kwire.log", "kwire.records")
WRITING = (
    "kwire.log.writing.log_manager",
    "kwire.log.writing.recovery",
    "kwire.records.append.validation",
    "kwire.maintenance.repair",
)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("line", "unneeded"),
    [
        ("--help", (*READING, "kwire.messages", "kwire.plan")),
        ("--version", (*READING, "kwire.messages", "kwire.plan")),
        ("log --help", (*READING, "kwire.messages", "kwire.plan", "kwire.cli.schema", "kwire.cli.serve")),
        ("serve --help", (*READING, "kwire.messages", "kwire.plan", "kwire.cli.log", "kwire.cli.schema")),
        ("log ls {data}", (*WRITING, "kwire.plan", "kwire.cli.schema")),
        ("log dump {segment}", (*WRITING, "kwire.plan", "kwire.cli.schema")),
        ("decode MetadataRequest --version 0 --hex 00000000", (*READING, "kwire.cli.log", "kwire.cli.schema")),
        ("schema show FetchRequest", (*READING, "kwire.plan", "kwire.cli.log")),
    ],
)
def test_a_command_imports_only_what_it_needs(
    line: str, unneeded: tuple[str, ...], kafka_logs: dict[str, Path]
) -> None:
    """Imports take most of the time of a short command."""
    data = kafka_logs["modern"] / "data"
    segment = data / "orders-0" / "00000000000000000000.log"
    code = (
        "import sys; from kwire.cli.main import run; assert run(sys.argv[2:]) == 0;"
        "print([name for name in sys.argv[1].split(',') if name in sys.modules])"
    )
    arguments = [word.format(data=data, segment=segment) for word in line.split()]
    done = subprocess.run(
        [sys.executable, "-c", code, ",".join((*HEAVY, *unneeded)), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_command_imports_pandas(kafka_logs: dict[str, Path]) -> None:
    """PyArrow would import it for its first scalar, which `kwire sql` needs immediately."""
    found = [sys.executable, "-c", "import pandas.core"]
    assert subprocess.run(found, check=False).returncode == 0
    query = ["-m", "kwire", "sql", str(kafka_logs["modern"] / "data"), "SELECT count(*) FROM orders"]
    done = subprocess.run([sys.executable, "-X", "importtime", *query], capture_output=True, text=True, check=True)
    assert "pyarrow._dataset" in done.stderr
    assert " pandas.core" not in done.stderr


@pytest.mark.parametrize("name", [name for names in COMMANDS.values() for name in names])
def test_each_command_is_added_by_the_module_that_the_table_names(name: str) -> None:
    everything, alone = (set(typer.main.get_command(build(command)).commands) for command in (None, name))
    assert name in alone < everything


def test_colours_are_for_terminals_and_no_color_disables_them(
    kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(kafka_logs["modern"] / "data")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert b"\x1b[1m" in on_terminal("log", "ls", data)
    monkeypatch.setenv("NO_COLOR", "1")
    assert b"\x1b" not in on_terminal("log", "ls", data)
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in kwire("log", "ls", data).out


def test_progress_goes_to_the_terminal_and_rows_to_the_file(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    """By default, the library of the progress bar redirects standard output, rows included."""
    log = str(kafka_logs["modern"] / "data" / "ids-0")
    rows = tmp_path / "rows.jsonl"
    shown = on_terminal("log", "dump", log, "--deep", "--format", "jsonl", output=rows)
    assert len(rows.read_bytes().splitlines()) == 736
    assert b"Reading" in shown
    assert b"{" not in shown


def test_an_internal_error_prints_its_traceback(monkeypatch: pytest.MonkeyPatch, kwire: Callable) -> None:
    """Only kwire's own errors become one line; anything else keeps its traceback."""

    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ls, "open_logs", broken)
    with pytest.raises(ZeroDivisionError):
        kwire("log", "ls", ".")


def test_damage_has_exit_code_1_with_file_position_and_offsets(kwire: Callable, tmp_path: Path) -> None:
    good, bad = batch(record()), batch(record(), base_offset=1, crc=7)
    file = segment(tmp_path / "orders-0", good, bad)
    result = kwire("log", "dump", file)
    assert result.code == 1
    assert f"{file}: checksum does not match, in the batch at byte {len(good)} (offset 1)" in result.err
    assert "INVALID" in result.out


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("number", "word"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "hung up")],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
@pytest.mark.parametrize("module", ["typer", "kwire.log", "end"])
def test_a_signal_has_no_traceback_at_any_moment(
    module: str, number: signal.Signals, word: str, kafka_logs: dict[str, Path]
) -> None:
    """It comes while a command is loaded, while it works, or when it has ended."""
    program = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Finder())
from kwire.cli.__main__ import main
if {module!r} == "end":
    import atexit
    atexit.register(os.kill, os.getpid(), {int(number)})
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "log", "ls", str(kafka_logs["modern"] / "data")],
        capture_output=True,
        text=True,
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),  # ignored in the background, or below nohup
    )
    at_work = module == "kwire.log"
    expected = (128 + number, f"kwire: {word}\n") if at_work else (-number, "")
    assert (done.returncode, done.stderr) == expected


def test_signals_that_are_ignored_stay_ignored(kafka_logs: dict[str, Path]) -> None:
    """As for a job in the background, or below nohup."""
    program = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
class Finder:
    def find_spec(self, name, *_):
        if name == "kwire.log":
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(os.getpid(), number)
sys.meta_path.insert(0, Finder())
from kwire.cli.__main__ import main
main()
"""
    words = ["log", "ls", str(kafka_logs["modern"] / "data")]
    assert subprocess.run([sys.executable, "-c", program, *words], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(
    "url",
    [
        "https://u:hunter2@127.0.0.1:{port}/data",
        "http://127.0.0.1:{port}/data?sig=hunter2",
        "sftp://u:hunter2@127.0.0.1:{port}/data",
        "s3://AKIA:hunter2@bucket/data",
        "tiered+s3://AKIA:hunter2@bucket/data",
        "kafka://u:hunter2@127.0.0.1:{port}",
        "nosuch://u:hunter2@host/data",
    ],
)
def test_no_command_shows_the_password_of_a_url(
    kwire: Callable, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for words in (("log", "ls"), ("log", "verify"), ("log", "export", "-o", str(tmp_path / "out"))):
        result = kwire(*words, url.format(port=port))
        assert result.code in (1, 2)
        assert "hunter2" not in result.out + result.err


def test_a_command_does_not_wait_for_a_port_where_nobody_listens(kwire: Callable) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for words in (("log", "ls"), ("group",), ("log", "dump")):
        started = time.monotonic()
        result = kwire(*words, f"kafka://127.0.0.1:{port}")
        assert time.monotonic() - started < 30  # clients try for 60 s
        assert (result.code, result.out) == (2, "")
        assert result.err == f"kwire: 127.0.0.1:{port}: cannot connect: Connection refused\n"


@pytest.mark.parametrize("words", [("log", "ls", "/nowhere"), ("serve", "-c", "nonsense")])
def test_commands_run_with_the_garbage_collector(words: tuple[str, ...], kwire: Callable) -> None:
    """It is disabled while the program loads."""
    gc.disable()
    try:
        assert kwire(*words).code == 2
        assert gc.isenabled()
    finally:
        gc.enable()
