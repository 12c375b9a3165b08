"""Data is escaped, so that it cannot control the terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.crafted import ACTED_ON, HOSTILE, hostile_log

from kwire.pages.escaping import json_line, printable


def is_harmless(text: str) -> bool:
    """Return whether text has no control characters but line breaks, and none that reorder or hide text."""
    acting = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return not any(
        (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c != "\n") or unicodedata.bidirectional(c) in acting
        for c in text
    )


@given(st.text(st.characters()) | st.binary())
def test_printable_escapes_control_characters(value: str | bytes) -> None:
    text = printable(value)
    assert is_harmless(text)
    assert "\n" not in text
    text.encode()  # a lone surrogate could not be written


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_lines_are_escaped_and_keep_their_values(text: str) -> None:
    line = json_line({"key": text})
    assert is_harmless(line)
    assert json.loads(line) == {"key": text}


def test_ordinary_text_is_unchanged() -> None:
    text = "Zürich 東京 Αθήνα k-1 C:\\temp 🚚"
    assert printable(text) == text
    assert printable(text.encode()) == text


COMMANDS = [
    ("log", "ls"),
    ("log", "ls", "--wide"),
    ("log", "ls", "--topics"),
    ("log", "ls", "--format", "json"),
    ("log", "dump"),
    ("log", "dump", "--deep"),
    ("log", "dump", "--deep", "--format", "json"),
    ("log", "dump", "--deep", "--format", "jsonl"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_hostile_names_keys_and_headers_are_escaped(command: tuple[str, ...], kwire: Callable, tmp_path: Path) -> None:
    result = kwire(*command, hostile_log(tmp_path / "data"))
    assert result.code == 0
    assert "a\\x1b]0;owned" in result.out or "a\\u001b]0;owned" in result.out
    for character in ACTED_ON:
        assert character not in result.out
        assert character not in result.err


def test_errors_escape_paths(kwire: Callable, tmp_path: Path) -> None:
    result = kwire("log", "ls", tmp_path / HOSTILE)
    assert result.code == 2
    assert "a\\x1b]0;owned" in result.err
    assert not any(character in result.err for character in ACTED_ON)


def on_terminal(*arguments: str, output: Path | None = None) -> bytes:
    """Return what a command writes to a terminal: its standard output, or its standard error if output names a file."""
    ours, theirs = pty.openpty()
    with (
        open(output or os.devnull, "wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "kwire.cli", *arguments],
            stdout=file if output else theirs,
            stderr=theirs if output else file,
            stdin=subprocess.DEVNULL,
        ) as process,
    ):
        os.close(theirs)
        written = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # Linux's way of saying that the other side is closed
                break
            if not chunk:
                break
            written += chunk
        os.close(ours)
    assert process.returncode == 0
    return written


def test_kafkas_lines_are_escaped_on_a_terminal_and_exact_in_a_pipe(kwire: Callable, tmp_path: Path) -> None:
    data = str(hostile_log(tmp_path / "data"))
    arguments = ("log", "dump", "--like-kafka", "--deep", data)
    assert b"\x1b" not in on_terminal(*arguments)
    assert "payload: line\nbreak\rreturn\n" in kwire(*arguments).out  # as Java's println leaves them


def test_invalid_utf_8_is_replaced_as_in_java(kwire: Callable, tmp_path: Path) -> None:
    """An encoded surrogate is one invalid sequence in Java and three invalid bytes in Python."""
    out = kwire("log", "dump", "--like-kafka", "--deep", hostile_log(tmp_path / "data")).out
    assert "key: \ufffd\x00\ufffd payload: line" in out
