"""A child that dies, hangs or prints something else fails its request, and the next one is run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kwire.conformance.vectors import Runner, RunnerFault
from kwire.conformance.vectors.runner import GIVE_UP_AFTER, MAX_RESPONSE_BYTES
from kwire.errors import OptionError

HEAD = """
import json, sys, time
def ask():
    head = sys.stdin.buffer.read(4)
    if not head: raise SystemExit
    return json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))
def answer(text):
    sys.stdout.buffer.write(len(text).to_bytes(4, "big") + text)
    sys.stdout.buffer.flush()
while True:
    task = ask()
    op = task["op"]
"""
ECHO = '    answer(json.dumps({"value": task["value"]}).encode())\n'


def program(folder: Path, body: str) -> list[str]:
    path = folder / "child.py"
    path.write_text(HEAD + body + ECHO)
    return [sys.executable, str(path)]


def test_requests_and_responses_alternate(tmp_path: Path) -> None:
    with Runner(program(tmp_path, "")) as runner:
        for value in (1, "käse", None, ["x" * 200_000]):  # the last one fills the pipes of both directions
            assert runner.ask({"op": "decode", "value": value}) == {"value": value}
        assert runner.starts == 1


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if op == 'bad': print('oops', file=sys.stderr); sys.exit(3)", "ended with exit code 3.*oops"),
        ("if op == 'bad': time.sleep(60)", "no response within"),
        ("if op == 'bad': answer(b'{nonsense'); continue", "not JSON"),
        ("if op == 'bad': answer(b'[1]'); continue", "not a JSON object"),
        ("if op == 'bad': answer(b'[' * 100000); continue", "not JSON"),
        ("if op == 'bad': sys.stdout.buffer.write(b'Starting up, please wait'); sys.stdout.flush()", "other output"),
        ("if op == 'bad': sys.stdout.buffer.write(b'\\0\\0'); sys.exit(0)", "ended with exit code 0"),
        ("if op == 'bad': sys.stdout.close(); sys.stdin.close(); time.sleep(60)", "closed its output|no response"),
        (
            "if op == 'bad': sys.stdout.buffer.write(bytes([0, 0, 0, 2]) + b'{}!'); sys.stdout.flush(); continue",
            "1 bytes after",
        ),
    ],
)
def test_a_failing_child_fails_its_request_and_is_started_again(tmp_path: Path, body: str, reason: str) -> None:
    with Runner(program(tmp_path, f"    {body}\n"), timeout_s=1 if "sleep" in body else 30) as runner:
        assert runner.ask({"op": "good", "value": 1}) == {"value": 1}
        with pytest.raises(RunnerFault, match=reason):
            runner.ask({"op": "bad", "value": 1})
        assert runner.ask({"op": "good", "value": 2}) == {"value": 2}
        assert runner.starts == 2


def test_a_response_as_large_as_allowed_is_read_and_no_larger_one(tmp_path: Path) -> None:
    body = f"    sys.stdout.buffer.write(({MAX_RESPONSE_BYTES} + (op == 'bad')).to_bytes(4, 'big'))\n"
    body += f"    sys.stdout.buffer.write(b' ' * ({MAX_RESPONSE_BYTES} - 2) + b'{{}}'); sys.stdout.flush(); continue\n"
    with Runner(program(tmp_path, body), timeout_s=30) as runner:
        assert runner.ask({"op": "good"}) == {}
        with pytest.raises(RunnerFault, match="a response of"):
            runner.ask({"op": "bad"})


def test_a_child_that_never_works_is_not_started_for_ever(tmp_path: Path) -> None:
    with Runner(program(tmp_path, "    sys.exit(1)\n"), timeout_s=1) as runner:
        for _ in range(GIVE_UP_AFTER):
            with pytest.raises(RunnerFault, match="exit code 1"):
                runner.ask({"op": "decode"})
        with pytest.raises(RunnerFault, match="not asked"):
            runner.ask({"op": "decode"})
        assert runner.starts == GIVE_UP_AFTER


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with Runner(["/nonexistent/runner"]) as runner, pytest.raises(OptionError, match="cannot be started"):
        runner.ask({"op": "decode"})
