"""Turns: no client waits for all the work of another, counted in requests, not in time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.broker.network.turns import SLICE_S, TURN_REQUESTS, TURN_S, FairQueue, Share, Turns
from kwire.broker.node import Node
from tests.broker.wire import RawClient

PIPELINED = 20_000


@pytest.fixture
def counting_broker() -> Iterator[Broker]:
    """A broker that logs all requests."""
    with Broker(keep_requests=200_000) as broker:
        yield broker


@contextlib.contextmanager
def blocked_thread(broker: Broker, then_advance_ms: int = 0) -> Iterator[None]:
    """Block the broker's thread, so that everything sent meanwhile has arrived when it continues."""
    holds, go_on = threading.Event(), threading.Event()

    def hold(node: Node) -> None:
        holds.set()
        go_on.wait()
        node.timers.jump(then_advance_ms)

    holder = threading.Thread(target=broker.call, args=(hold,))
    holder.start()
    holds.wait()
    try:
        yield
    finally:
        go_on.set()
        holder.join()


def test_a_client_waits_for_one_turn_of_each_other(counting_broker: Broker) -> None:
    request = messages.ApiVersionsRequest()
    with contextlib.ExitStack() as stack:
        greedy = [stack.enter_context(RawClient(counting_broker, f"greedy-{n}")) for n in range(3)]
        modest = stack.enter_context(RawClient(counting_broker, "modest"))
        for each in (*greedy, modest):
            each.ask(request, 0)
        counting_broker.requests.clear()
        with blocked_thread(counting_broker):
            for each in greedy:
                frame = each.protocol.send(request, version=0)
                each.sock.setblocking(False)
                assert each.sock.send(frame * PIPELINED) > 10 * TURN_REQUESTS * len(frame)
            modest.send(request, 0)
        modest.receive()
        clients = [each.client_id for each in counting_broker.requests]
    assert clients.index("modest") <= len(greedy) * TURN_REQUESTS


def test_requests_after_one_that_waited_are_handled_in_turns(counting_broker: Broker) -> None:
    fetch = messages.FetchRequest
    topic = fetch.FetchTopic(topic="waits", partitions=[fetch.FetchPartition(partition=0)])
    request = messages.ApiVersionsRequest()
    counting_broker.create_topic("waits")  # by nobody whose turn then comes later
    with RawClient(counting_broker, "greedy") as greedy, RawClient(counting_broker, "modest") as modest:
        greedy.send(fetch(max_wait_ms=600_000, min_bytes=1, topics=[topic]), 11)
        for _ in range(1000):
            greedy.send(request, 0)
        modest.ask(request, 0)  # everything sent before has arrived
        counting_broker.requests.clear()
        with blocked_thread(counting_broker, then_advance_ms=600_000):
            modest.send(request, 0)
        modest.receive()
        clients = [each.client_id for each in counting_broker.requests]
        for _ in range(1001):
            greedy.receive()
    assert clients.index("modest") <= TURN_REQUESTS + 1


def serve(queue: FairQueue[str], shares: dict[str, Share], costs: dict[str, float]) -> str:
    """Serve the next item; queue it again immediately if it is in `costs`."""
    name = queue.pop()
    queue.charge(shares[name], costs.get(name, 0.001))
    if name in costs:
        queue.push(shares[name], name)
    return name


def test_a_client_of_short_requests_goes_before_clients_of_long_ones() -> None:
    queue: FairQueue[str] = FairQueue()
    shares = {name: queue.new_share() for name in ("quiet", *map(str, range(60)))}
    costs = dict.fromkeys(map(str, range(60)), 0.02)
    for name in costs:
        queue.push(shares[name], name)
    for _ in range(60):  # the first one of each
        assert serve(queue, shares, costs) in costs
    for _ in range(600):  # the idle one is queued repeatedly, and uses more time than each of the others
        queue.push(shares["quiet"], "quiet")
        assert serve(queue, shares, costs) == "quiet"
        serve(queue, shares, costs)


def test_new_clients_go_after_existing_ones() -> None:
    queue: FairQueue[str] = FairQueue()
    shares = {"quiet": queue.new_share()}
    for _ in range(1000):
        queue.push(shares["quiet"], "quiet")
        serve(queue, shares, {})
    for name in map(str, range(60)):
        shares[name] = queue.new_share()
        queue.push(shares[name], name)
    queue.push(shares["quiet"], "quiet")
    assert serve(queue, shares, {}) == "quiet"


def test_clients_of_long_requests_do_not_starve() -> None:
    queue: FairQueue[str] = FairQueue()
    shares = {name: queue.new_share() for name in ("short", "long")}
    costs = {"short": 0.001, "long": 0.02}
    for name in costs:
        queue.push(shares[name], name)
    served = [serve(queue, shares, costs) for _ in range(5000)]
    assert served.count("long") >= 5000 / (0.02 / 0.001) ** 2 - 1


class Worker:
    """A busy connection: each request advances the clock by `cost_s`."""

    def __init__(self, turns: Turns, clock: list[float], order: list[str], name: str, cost_s: float, n: int) -> None:
        self.share, self.is_queued = turns.new_share(), False
        self._turns, self._clock, self._order = turns, clock, order
        self._name, self._cost_s, self.left = name, cost_s, n

    def turn(self) -> bool:
        while self.left and self._turns.has_time:
            self._clock[0] += self._cost_s
            self._order.append(self._name)
            self.left -= 1
        return bool(self.left)

    def close(self, why: str) -> None:
        self._order.append(f"{self._name} closed: {why}")
        self.left = 0


async def run_until_done(workers: list[Worker]) -> int:
    """Count the runs of the event loop."""
    rounds = 0
    while any(worker.left for worker in workers):
        await asyncio.sleep(0)
        rounds += 1
    return rounds


def test_the_event_loop_runs_after_every_slice() -> None:
    async def scene() -> int:
        clock, order = [0.0], list[str]()
        turns = Turns(asyncio.get_running_loop(), clock=lambda: clock[0])
        workers = [Worker(turns, clock, order, str(n), TURN_S / 5, 100) for n in range(4)]
        turns.start(workers)
        assert len(order) <= SLICE_S / (TURN_S / 5) + 1
        return await run_until_done(workers)

    assert asyncio.run(scene()) >= 4 * 100 * (TURN_S / 5) / SLICE_S / 2


def test_all_others_go_before_the_next_expensive_request() -> None:
    async def scene() -> list[str]:
        clock, order = [0.0], list[str]()
        turns = Turns(asyncio.get_running_loop(), clock=lambda: clock[0])
        dear = [Worker(turns, clock, order, f"dear-{n}", 1.0, 5) for n in range(3)]
        cheap = Worker(turns, clock, order, "cheap", 0.0001, 40)
        turns.start([*dear, cheap])
        await run_until_done([*dear, cheap])
        return order

    order = asyncio.run(scene())
    assert order[:3] == ["dear-0", "dear-1", "dear-2"]  # first in the queue, one request each
    assert order[3:43] == ["cheap"] * 40  # all its requests cost less than one of theirs


def test_a_connection_that_fails_does_not_affect_others() -> None:
    class Failing(Worker):
        def turn(self) -> bool:
            raise ValueError("a fault of ours")

    async def scene() -> list[str]:
        clock, order = [0.0], list[str]()
        turns = Turns(asyncio.get_running_loop(), clock=lambda: clock[0])
        workers = [Failing(turns, clock, order, "a", 1, 1), Worker(turns, clock, order, "b", 0.001, 2)]
        turns.start(workers)
        await run_until_done(workers)
        return order

    assert asyncio.run(scene()) == ["a closed: internal error of the broker", "b", "b"]
