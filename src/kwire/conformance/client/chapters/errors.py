"""Each error of each API: the retriable ones are retried, the others reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.consumer import numbered, stored
from kwire.conformance.client.judging import consumed, records, reported, retried, told_or, written_once
from kwire.conformance.client.program import Outcome
from kwire.conformance.client.scenario import Chapter, Finding, Steps, expect
from kwire.conformance.client.stage import Stage
from kwire.conformance.client.task import Task, consume, produce, transact, transaction
from kwire.protocol.error_codes import ErrorCode

__all__ = ["chapter"]

chapter = Chapter("Errors")


IDEMPOTENT = {"enable_idempotence": "true"}


class Flow(NamedTuple):
    """A task that sends an API's requests, and how success looks."""

    task: Callable[[Stage], Task]
    succeeded: Callable[[Stage, Outcome, Task], None]


def _produce_task(s: Stage) -> Task:
    return produce(s.topic(), records(3), **IDEMPOTENT)


def _produced(s: Stage, out: Outcome, task: Task) -> None:
    written_once(s, out, task.topic, 3)


def _consume_task(s: Stage) -> Task:
    return consume(stored(s, 3), 3)


def _group_task(s: Stage) -> Task:
    return consume(stored(s, 3), 3, group=s.name("group"), commit=True)


def _consumed(s: Stage, out: Outcome, task: Task) -> None:
    consumed(out, numbered(3))


def _committed(s: Stage, out: Outcome, task: Task) -> None:
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")


def _transact_task(s: Stage) -> Task:
    s.front.hides_features = True  # the second version of transactions has no AddPartitionsToTxn
    s.versions("Produce", 3, 11)
    s.versions("EndTxn", 0, 4)
    offsets = {"group": s.name("group"), "partition": 0, "offset": 5}
    return transact(s.topic(), s.name("txn"), [transaction(records(2), offsets=offsets)])


def _transacted(s: Stage, out: Outcome, task: Task) -> None:
    expect(out.ended == ["commit"], f"the transaction was not committed: {out.complaints[:1]}")
    written_once(s, out, task.topic, 2)


FLOWS = {
    "Produce": Flow(_produce_task, _produced),
    "Metadata": Flow(_produce_task, _produced),
    "InitProducerId": Flow(_transact_task, _transacted),
    "Fetch": Flow(_consume_task, _consumed),
    "ListOffsets": Flow(_consume_task, _consumed),
    "FindCoordinator": Flow(_group_task, _committed),
    "JoinGroup": Flow(_group_task, _committed),
    "SyncGroup": Flow(_group_task, _committed),
    "Heartbeat": Flow(lambda s: _slow_group_task(s), _committed),
    "OffsetCommit": Flow(_group_task, _committed),
    "OffsetFetch": Flow(_group_task, _committed),
    "AddPartitionsToTxn": Flow(_transact_task, _transacted),
    "AddOffsetsToTxn": Flow(_transact_task, _transacted),
    "TxnOffsetCommit": Flow(_transact_task, _transacted),
    "EndTxn": Flow(_transact_task, _transacted),
}


def _slow_group_task(s: Stage) -> Task:
    """Records arrive only after a while, in which heartbeats are sent."""
    task = _group_task(s)
    s.script.add("Fetch", times=4, change=lambda exchange, body: setattr(body, "responses", []))
    s.script.delay("Fetch", 0.25, times=4)
    return task


RETRIED = {
    "Produce": [2, 3, 5, 6, 7, 13, 19, 20, 56],
    "Metadata": [3, 5],
    "Fetch": [3, 6, 9, 56, 74, 75, 78, 100, 103],
    "ListOffsets": [3, 5, 6, 56, 74, 75, 78],
    "FindCoordinator": [14, 15],
    "JoinGroup": [14, 15, 16, 25],
    "SyncGroup": [15, 16, 22, 25, 27],
    "Heartbeat": [15, 16, 22, 25, 27],
    "OffsetCommit": [3, 7, 14, 15, 16],
    "OffsetFetch": [14, 16, 88],
    "InitProducerId": [14, 15, 16, 51],
    "AddPartitionsToTxn": [3, 14, 15, 16, 51],
    "AddOffsetsToTxn": [14, 15, 16, 51],
    "TxnOffsetCommit": [3, 7, 14, 15, 16],
    "EndTxn": [14, 15, 16, 51],
}
"""Errors after which Kafka's client tries again: one response with the error, then the broker serves."""

REPORTED = {
    "Produce": [10, 17, 21, 29, 31, 87],
    "Metadata": [17, 29],
    "Fetch": [29],
    "ListOffsets": [29],
    "FindCoordinator": [30],
    "JoinGroup": [23, 26, 30, 81, 82],
    "SyncGroup": [30, 82],
    "OffsetCommit": [12, 28, 29, 30, 82],
    "OffsetFetch": [29, 30],
    "InitProducerId": [50, 53, 90],
    "AddPartitionsToTxn": [29, 47, 48, 49, 53, 90],
    "AddOffsetsToTxn": [30, 47, 48, 49, 53, 90],
    "TxnOffsetCommit": [12, 28, 30, 47, 90],
    "EndTxn": [47, 48, 53, 90],
}
"""Errors that Kafka's client reports; every response has the error."""


def _name(code: int) -> str:
    return ErrorCode(code).name


def _sent(s: Stage, api: str, out: Outcome) -> None:
    """A client that never sends the request has nothing to retry."""
    if not s.exchanges(api):
        why = out.complaints[0][:100] if out.complaints else "it did without"
        raise Finding(f"the client sent no {api} request: {why}", Verdict.UNSUPPORTED)


def _retry(api: str, code: int) -> None:
    flow, name = FLOWS[api], _name(code)

    def play(s: Stage) -> Steps:
        task = flow.task(s)
        s.script.fail(api, name)
        out = yield task
        _sent(s, api, out)
        told_or(out, lambda: flow.succeeded(s, out, task), f"{name} is reported instead of retried")
        if not _joined_again(s, api):
            retried(s, api)

    steps = (f"The broker responds to the first {api} request with {name}.", "The client tries again, and succeeds.")
    chapter.add(f"RETRY-{_words(api)}-{code:02}", f"{api} is retried after {name}", "Errors", play, steps=steps)


def _joined_again(s: Stage, api: str) -> bool:
    """Return whether a member joined again after its heartbeat failed, perhaps to leave before the next is due."""
    first = s.exchanges(api)[0]
    return api == "Heartbeat" and any(each.at > first.at for each in s.exchanges("JoinGroup"))


def _report(api: str, code: int) -> None:
    flow, name = FLOWS[api], _name(code)

    def play(s: Stage) -> Steps:
        # a batch of several records may be split after MESSAGE_TOO_LARGE
        task = produce(s.topic(), records(1), **IDEMPOTENT) if (api, code) == ("Produce", 10) else flow.task(s)
        s.script.fail(api, name, times=None)
        out = yield task
        _sent(s, api, out)
        reported(out, name)
        expect(not out.committed, "the program says that the offset is committed")
        expect("commit" not in out.ended, "the program says that the transaction is committed")
        if api == "Produce":
            expect(not out.acked, "records are acknowledged that no broker has")

    steps = (f"The broker responds to every {api} request with {name}.", "The application gets the error in time.")
    chapter.add(f"REPORT-{_words(api)}-{code:02}", f"{name} of {api} is reported", "Errors", play, steps=steps)


def _words(api: str) -> str:
    return "".join(f"-{c}" if c.isupper() and i else c for i, c in enumerate(api)).upper()


for _api in FLOWS:
    for _code in RETRIED.get(_api, []):
        _retry(_api, _code)
    for _code in REPORTED.get(_api, []):
        _report(_api, _code)
