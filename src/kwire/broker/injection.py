"""Requests with the faults of tests: what happens before, instead of and after their handling.

Which faults apply is decided once, when the request arrives (Faults.take). Most brokers have none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire.broker.dispatch import Call, call_handler, error_response
from kwire.broker.faults.conditions import Seen
from kwire.broker.faults.effects import Delivery, Kind
from kwire.broker.faults.names import FETCH, SESSION_APIS
from kwire.broker.node import Node
from kwire.broker.responses import Response, SplicedResponse
from kwire.errors import BrokerError

if TYPE_CHECKING:
    from kwire.broker.clock import Timers
    from kwire.broker.faults.effects import Effect
    from kwire.broker.faults.entities import Entity, TopicNames
    from kwire.broker.faults.plan import Plan, Step
    from kwire.broker.topics import TopicRegistry
    from kwire.messages.base import Message
    from kwire.protocol.error_codes import ErrorCode

__all__ = ["Injection", "NodeTopics", "respond"]

log = logging.getLogger("kwire.broker")

INJECTED = "fault injected by a test"


class NodeTopics:
    """The topics of a node, as conditions of faults refer to them; see TopicNames."""

    def __init__(self, node: Node) -> None:
        self._topics: TopicRegistry = node.topics
        self._sessions, self._share_sessions = node.fetch_sessions, node.share_sessions

    def name_of(self, topic_id: UUID) -> str | None:
        """See TopicNames."""
        topic = self._topics.with_id(topic_id)
        return None if topic is None else topic.name

    def id_of(self, name: str) -> UUID | None:
        """See TopicNames."""
        topic = self._topics.get(name)
        return None if topic is None else topic.topic_id

    def names(self) -> list[str]:
        """See TopicNames."""
        return [topic.name for topic in self._topics]

    def fetched(self, session_id: int) -> list[tuple[str | UUID, int]]:
        """See TopicNames."""
        return self._sessions.partitions(session_id)

    def share_fetched(self, group_id: str, member_id: str) -> list[tuple[UUID, int]]:
        """See TopicNames."""
        session = self._share_sessions.get(group_id, member_id)
        return [] if session is None else list(session.partitions)


def respond(node: Node, call: Call) -> Response | asyncio.Future[Response | None] | None:
    """Handle a request; returns the response or a future of it. None: the connection closes without a response."""
    if node.faults.is_empty or call.request is None:  # an unknown version of ApiVersions gets the list of versions
        return call_handler(node, call)
    context = call.context
    topics = NodeTopics(node)
    seen = Seen(context.api_key, context.api_version, context.client_id, call.request, topics, node_id=node.node_id)
    plan = node.faults.take(seen)
    if plan is None:
        return call_handler(node, call)
    injection = Injection(call, plan, topics, node.timers, lambda each: call_handler(node, each))
    return asyncio.ensure_future(injection.run())


class Injection:
    """A request being handled with faults. handle: passes the request to what handles it, such as the broker."""

    def __init__(
        self,
        call: Call,
        plan: Plan,
        topics: TopicNames,
        timers: Timers,
        handle: Callable[[Call], Response | asyncio.Future[Response | None]],
    ) -> None:
        self._call, self._plan, self._topics, self._timers = call, plan, topics, timers
        self._pass_on = handle

    async def run(self) -> Response | None:
        """Return the response; None if none is sent."""
        plan = self._plan
        steps = [*plan.before, *([plan.answer] if plan.answer else []), *plan.after]
        try:
            for step in plan.before:
                await self._wait(step)
            response = await self._answer(plan.answer) if plan.answer is not None else await self._handle()
            for step in plan.after:
                if response is not None:
                    response = await self._apply(step, response)
            return response
        finally:
            for step in steps:
                if step.gate is not None:
                    step.fault.forget(step.gate)

    async def _wait(self, step: Step) -> None:
        """Wait until a delay is over, or until a held request is released."""
        if step.gate is not None:
            await step.gate.opened
        elif step.fault.effect.delay_ms:
            due = asyncio.Event()
            self._timers.call_later(step.fault.effect.delay_ms, due.set)
            await due.wait()

    def _close(self) -> None:
        """Close the connection instead of sending the response."""
        self._call.expects_reply, self._call.context.peer.must_close = False, True

    # Instead of the broker

    async def _answer(self, step: Step) -> Response | None:
        effect, call = step.fault.effect, self._call
        if effect.kind is Kind.SILENCE:
            if effect.after:
                await self._handle()
            await self._wait(step)
            self._close()
            return None
        if effect.kind is Kind.DROP:
            self._close()
            return None
        if effect.reply is not None and call.request is not None:
            try:
                return effect.reply(call.request)
            except Exception as error:
                return self._report(step, error)
        assert effect.error is not None
        return self._fail(effect.error)

    def _fail(self, code: ErrorCode) -> Message:
        """Return a response in which all of the request fails."""
        from kwire.broker.faults.entities import failed
        from kwire.broker.faults.shapes import response_shape

        call, context = self._call, self._call.context
        if not call.expects_reply:  # acks=0: closing is the only way to report an error
            context.peer.must_close = True
        shape = response_shape(context.api_key, context.api_version)
        if shape.error or (hasattr(call.handler, "error_response") and context.api_key != FETCH) or not shape.levels:
            response = error_response(call, BrokerError(INJECTED, code))
            if shape.error is None and hasattr(response, "error_code"):
                response.error_code = 0  # a field of later versions: elements have the error
            return response
        assert call.request is not None
        return failed(call.request, context.api_key, context.api_version, code, INJECTED)

    # By the broker

    async def _handle(self) -> Response | None:
        """Let the broker handle what no fault answers; returns its response with the errors of the others."""
        from kwire.broker.faults.entities import failed, mark, merge
        from kwire.broker.faults.shapes import response_shape

        plan, call, context = self._plan, self._call, self._call.context
        key, version = context.api_key, call.response_version
        errors = [failed(message, key, version, code, INJECTED) for message, code in plan.failed]
        if plan.is_all_failed:
            response: Response | None = errors.pop(0)
            if not call.expects_reply:
                context.peer.must_close = True
        else:
            response = await self._call_handler()
        body = response.body if isinstance(response, SplicedResponse) else response
        if body is None:
            return None
        for each in errors:
            merge(body, each, key, version)
        if key not in SESSION_APIS:
            for test, code in plan.marked:
                mark(body, key, version, test, code, INJECTED, self._topics)
        if plan.top_error is not None and response_shape(key, version).error:
            body.error_code = int(plan.top_error)  # type: ignore[attr-defined]
        return response

    async def _call_handler(self) -> Response | None:
        call, plan = self._call, self._plan
        if plan.marked and call.context.api_key in SESSION_APIS:
            call.context.fetch_error = self._fetch_error
        whole, call.request = call.request, plan.message
        response = self._pass_on(call)
        call.request = whole  # for the request log
        return await response if isinstance(response, asyncio.Future) else response

    def _fetch_error(self, topic: str | UUID, index: int) -> ErrorCode | None:
        named = self._partition(topic, index)
        return next((code for test, code in self._plan.marked if test(named)), None)

    def _partition(self, topic: str | UUID, index: int) -> Entity:
        if isinstance(topic, UUID):
            return {"topic": self._topics.name_of(topic), "topic_id": topic, "partition": index}
        return {"topic": topic, "topic_id": self._topics.id_of(topic), "partition": index}

    # Afterwards

    async def _apply(self, step: Step, response: Response) -> Response | None:
        """Apply the effect of a fault on a response; returns the one that is sent."""
        effect = step.fault.effect
        if effect.waits:
            await self._wait(step)
        elif effect.kind is Kind.DROP:
            self._close()
        elif effect.edit is not None:
            return self._edit(step, effect.edit, response)
        elif effect.kind is Kind.CORRUPT:
            return self._corrupt(step, response)
        else:
            self._call.delivery = delivery(effect, self._call.delivery)
        return response

    def _edit(self, step: Step, edit: Callable[[Message, Message], Any], response: Response) -> Message:
        from kwire.broker.faults.corruption import with_records

        body = with_records(response)
        assert self._call.request is not None
        try:
            edit(self._call.request, body)
        except Exception as error:
            return self._report(step, error)
        return body

    def _corrupt(self, step: Step, response: Response) -> Message:
        from kwire.broker.faults.corruption import corrupt_records, with_records

        body, conditions = with_records(response), step.fault.conditions
        assert conditions is not None
        corrupt_records(body, lambda topic, index: conditions.selects(self._partition(topic, index)))
        return body

    def _report(self, step: Step, error: Exception) -> Message:
        """Report the exception of a function that a fault was given: to the test, and to the client."""
        log.error("%r: its function failed", step.fault, exc_info=error)
        step.fault.report(error)
        return error_response(self._call, error)


def delivery(effect: Effect, so_far: Delivery | None) -> Delivery:
    """Return how a response is sent with one more effect on it."""
    sent, rate = (None, 0) if so_far is None else (so_far.sent_bytes, so_far.bytes_per_second)
    if effect.kind is Kind.CUT:
        return Delivery(sent_bytes=effect.sent_bytes, bytes_per_second=rate)
    return Delivery(sent_bytes=sent, bytes_per_second=effect.bytes_per_second)
