"""Control over HTTP: what it does, what it refuses, and that it never holds up the broker."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from kwire.broker import Broker, Cluster
from kwire.broker.clock import MAX_MS
from kwire.broker.control import ControlServer, server
from kwire.broker.control.routes import CONDITIONS, ROUTES
from kwire.broker.faults.effects import Kind
from kwire.errors import OptionError
from tests.broker.faults.conftest import message, produce
from tests.broker.wire import RawClient
from tests.waiting import HANG_MS, HANG_S, until


class Control:
    """A client of the control server."""

    def __init__(self, control: ControlServer) -> None:
        self.url = control.address
        self.port = int(self.url.rpartition(":")[2])

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Send a request; return the status and the JSON of the response."""
        data = None if body is None else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Content-Type": "application/json", **given} if data is not None else given
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=HANG_S) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def fault(self, **values: Any) -> str:
        """Add a fault; return its path."""
        status, added = self("POST", "/faults", values)
        assert status == 200, added
        return f"/faults/{added['id']}"


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker(keep_requests=1000) as broker:
        yield broker


@pytest.fixture(scope="module")
def listening(running: Broker) -> Iterator[ControlServer]:
    with ControlServer(running) as control:
        yield control


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()


@pytest.fixture
def control(broker: Broker, listening: ControlServer) -> Control:
    return Control(listening)


@pytest.fixture
def raw(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def test_a_fault_applies_and_says_so(control: Control, raw: RawClient) -> None:
    assert control("POST", "/topics", {"name": "orders", "partitions": 2})[1]["partitions"] == 2
    path = control.fault(effect="fail", api="Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1)
    (topic,) = raw.ask(produce("orders", 0, 1), 9).responses
    assert {each.index: each.error_code for each in topic.partition_responses} == {0: 0, 1: 6}
    _, shown = control("POST", f"{path}/wait", {"hits": 1})
    assert {name: shown[name] for name in ("hits", "calls", "held", "left", "active", "partition", "error")} == {
        "hits": 1, "calls": 1, "held": 0, "left": 0, "active": False, "partition": 1, "error": "NOT_LEADER_OR_FOLLOWER",
    }  # fmt: skip
    assert [each["id"] for each in control("GET", "/faults")[1]["faults"]] == [shown["id"]]
    assert control("DELETE", path)[0] == 200
    assert control("GET", path) == (404, {"error": f"no fault {shown['id']}: it was removed, or the broker was reset"})


def test_a_held_request_is_released(control: Control, raw: RawClient) -> None:
    path = control.fault(effect="hold", api="Heartbeat", group="billing")
    raw.send(message("HeartbeatRequest", group_id="billing"), 4)
    assert control("POST", f"{path}/wait", {"timeout_ms": HANG_MS})[1]["held"] == 1
    assert control("POST", f"{path}/release") == (200, {"released": 1})
    assert raw.receive().error_code
    path = control.fault(effect="hold", api="Heartbeat")
    raw.send(message("HeartbeatRequest", group_id="billing"), 4)
    control("POST", f"{path}/wait", {"timeout_ms": HANG_MS})
    assert control("DELETE", "/faults")[1]["removed"] >= 1
    assert raw.receive().error_code


@pytest.mark.parametrize(
    "values",
    [
        {"effect": "fail", "error": 27, "whole": True, "group": "b*", "skip": 1, "times": None},
        {"effect": "respond", "response": {"errorCode": "REBALANCE_IN_PROGRESS"}, "version": [3, 4]},
        {"effect": "change", "changes": {"throttle_time_ms": 5}, "where": {"groupId": "b"}},
        {"effect": "throttle", "throttle_ms": 5, "on_call": 2},
        {"effect": "delay", "delay_ms": 0.5, "after": True},
        {"effect": "hold", "after": True},
        {"effect": "drop", "every": 3},
        {"effect": "cut", "sent_bytes": 5},
        {"effect": "slow", "bytes_per_second": 1000, "client_id": "a"},
        {"effect": "corrupt", "api": "Fetch", "topic": "orders", "partition": [0, 1]},
        {"effect": "silence", "probability": 0.5, "seed": 3},
        {"effect": "refuse", "times": 2},
        {"effect": "observe", "api": ["Heartbeat", "JoinGroup"]},
    ],
    ids=lambda values: values["effect"],
)
def test_each_kind_of_fault_can_be_added(control: Control, values: dict[str, Any]) -> None:
    if values["effect"] != "refuse":
        values = {"api": "Heartbeat", **values}
    status, shown = control("POST", "/faults", values)
    assert status == 200, shown
    expected = {**values, "error": "REBALANCE_IN_PROGRESS"} if "error" in values else values
    assert {name: value for name, value in shown.items() if name in expected} == expected


def test_numbers_of_hits_and_requests_are_checked(control: Control) -> None:
    path = control.fault(effect="hold", api="Heartbeat")
    for action, body in (("wait", {"hits": -1}), ("release", {"count": -1})):
        status, shown = control("POST", f"{path}/{action}", body)
        assert (status, "-1: must be 0 or more" in shown["error"]) == (400, True)


def test_requests_are_listed_and_waited_for(control: Control, raw: RawClient) -> None:
    for group in "ab":
        raw.ask(message("HeartbeatRequest", group_id=group, member_id="m"), 4)
    status, found = control("POST", "/requests/wait", {"api": "Heartbeat", "group": "b"})
    assert (status, found["api"], found["errors"]) == (200, "Heartbeat", ["UNKNOWN_MEMBER_ID"])
    assert found["request"]["groupId"] == "b"
    assert found["response"]["errorCode"] == 25
    shown = control("GET", "/requests?api=Heartbeat&limit=1")[1]
    assert (shown["total"], [each["request"]["groupId"] for each in shown["requests"]]) == (2, ["b"])
    assert control("DELETE", "/requests") == (200, {})
    assert control("GET", "/requests")[1]["total"] == 0
    status, late = control("POST", "/requests/wait", {"api": "Heartbeat", "timeout_ms": 1})
    assert (status, late["error"]) == (408, "no request to Heartbeat in 0.001 s, of 0 in the request log")


def test_topics_groups_and_time(control: Control) -> None:
    status, made = control("POST", "/topics", {"name": "orders", "configs": {"retention.ms": 1000}})
    assert (status, made["name"], made["partitions"]) == (200, "orders", 1)
    assert control("POST", "/topics", {"name": "orders"})[1]["code"] == "TOPIC_ALREADY_EXISTS"
    assert control("GET", "/topics")[1]["topics"] == [made]
    assert control("GET", "/topics/order") == (404, {"error": "no topic 'order' (did you mean 'orders'?)"})
    assert control("DELETE", "/topics/orders") == (200, made)
    assert control("GET", "/groups/billing") == (404, {"error": "no group 'billing'"})
    status, shown = control("POST", "/groups/billing/wait", {"members": 2, "timeout_ms": 1})
    assert (status, "not stable with 2 members" in shown["error"]) == (408, True)
    before = control("GET", "/")[1]["now_ms"]
    assert control("POST", "/clock/advance", {"ms": 86_400_000})[1]["now_ms"] - before >= 86_400_000
    assert control("POST", "/reset") == (200, {})
    assert abs(control("GET", "/")[1]["now_ms"] - before) < HANG_MS


def test_the_clock_ends_with_the_year_9999(control: Control, broker: Broker) -> None:
    now_ms = control("GET", "/")[1]["now_ms"]
    broker.advance(MAX_MS - now_ms - HANG_MS)
    for ms in (HANG_MS + 1, 10**19):
        status, shown = control("POST", "/clock/advance", {"ms": ms})
        assert (status, "the clock ends with the year 9999" in shown["error"]) == (400, True)
        with pytest.raises(OptionError, match=f"invalid ms {ms}: the clock ends with the year 9999, in"):
            broker.advance(ms)
    assert control("POST", "/topics", {"name": "orders"})[0] == 200
    broker.reset()
    assert abs(control("GET", "/")[1]["now_ms"] - now_ms) < HANG_MS


def test_nodes_of_a_cluster() -> None:
    with Cluster(nodes=2) as cluster, ControlServer(cluster) as server:
        control = Control(server)
        assert [each["id"] for each in control("GET", "/")[1]["nodes"]] == [1, 2]
        control("POST", "/topics", {"name": "orders"})
        assert control("POST", "/leaders", {"topic": "orders", "partition": 0, "to": 2}) == (200, {"node": 2})
        nodes = control("POST", "/nodes/2/stop")[1]["nodes"]
        assert [each["is_running"] for each in nodes] == [True, False]
        assert control("POST", "/nodes/2/start")[0] == 200
        nodes = control("POST", "/nodes/1/crash")[1]["nodes"]
        assert [each["is_running"] for each in nodes] == [False, True]
        assert control("POST", "/nodes/1/start")[0] == 200
        assert control("POST", "/nodes/9/stop")[1] == {"error": "unknown node 9: the cluster has 1, 2"}
        assert control("POST", "/nodes/x/stop")[0] == 404
        assert control("POST", "/coordinators", {"name": "billing"})[0] == 400


def test_a_single_broker_has_no_nodes(control: Control) -> None:
    assert control("POST", "/nodes/1/stop") == (400, {"error": "the broker is a single node: start it with --nodes"})


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("POST", "/faults", {}, 400, "unknown effect None; effects: fail"),
        ("POST", "/faults", {"effect": "fial"}, 400, "unknown effect 'fial' (did you mean 'fail'?)"),
        ("POST", "/faults", {"effect": "clear"}, 400, "unknown effect 'clear'"),
        ("POST", "/faults", {"effect": "fail", "api": "Produce"}, 400, "fail: missing a required argument: 'error'"),
        ("POST", "/faults", {"effect": "fail", "api": "Produse", "error": 1}, 400, "did you mean 'Produce'?"),
        ("POST", "/faults", {"effect": "fail", "api": 3, "error": 1}, 400, "invalid API 3"),
        ("POST", "/faults", {"effect": "fail", "api": "Fetch", "error": [1]}, 400, "invalid error [1]"),
        ("POST", "/faults", {"effect": "drop", "api": "Fetch", "after": 1}, 400, "invalid after 1"),
        ("POST", "/faults", {"effect": "drop", "api": "Fetch", "topc": "a"}, 400, "(did you mean 'topic'?)"),
        ("POST", "/faults", {"effect": "drop", "api": "Fetch", "when": "x"}, 400, "when is a function of Python"),
        ("POST", "/faults", [1], 400, "the body must be a JSON object"),
        ("POST", "/faults/99/wait", {}, 404, "no fault 99"),
        ("GET", "/faults/x", None, 404, "no fault x"),
        ("GET", "/faults/%31%32345678901234567890", None, 404, "no fault"),
        ("GET", "/fault", None, 404, "no such path: /fault (did you mean '/faults'?); see /openapi.json"),
        ("DELETE", "/reset", None, 404, "/reset has no method DELETE, only POST"),
        ("POST", "/topics", {}, 400, "name is missing"),
        ("POST", "/topics", {"name": 5}, 400, "invalid name 5: must be of type string"),
        ("POST", "/topics", {"name": "a", "partition": 5}, 400, "unknown member 'partition' (did you mean"),
        ("POST", "/topics", {"name": "a", "partitions": True}, 400, "invalid partitions True"),
        ("POST", "/topics", {"name": "a/b"}, 409, ""),
        ("POST", "/topics", {"name": "a", "configs": {"no.such": 1}}, 409, "no.such"),
        ("POST", "/topics", {"name": "a", "configs": {"name": "b"}}, 409, "Unknown topic config name: name"),
        ("POST", "/topics", {"name": "a", "configs": {"partitions": 1}}, 409, "Unknown topic config name: partitions"),
        ("POST", "/topics", {"name": "a", "configs": {"replication_factor": 1}}, 409, "Unknown topic config name: rep"),
        (
            "POST",
            "/topics",
            {"name": "a", "configs": {"retention.ms": [1]}},
            400,
            "invalid configs.retention.ms [1]: m",
        ),
        (
            "POST",
            "/topics",
            {"name": "a", "configs": {"retention.ms": 1, "retention_ms": 2}},
            400,
            "config retention.ms is given twice: '1' and 2",
        ),
        ("POST", "/clock/advance", {"ms": -1}, 400, "invalid ms -1"),
        ("POST", "/clock/advance", {"ms": 10**19}, 400, "invalid ms 10000000000000000000"),
        ("POST", "/groups/a/wait", {"timeout_ms": 10**9}, 400, "invalid timeout_ms 1000000000"),
        ("POST", "/groups/a/wait", {"members": -1}, 400, "invalid members -1: must be 0 or more"),
        ("POST", "/requests/wait", {}, 400, "api is missing"),
        ("POST", "/requests/wait", {"api": "Fetch", "skip": 1}, 400, "skip is a condition of faults only"),
        ("GET", "/requests?limit=0", None, 400, "invalid limit '0'"),
        ("GET", "/requests?limits=5", None, 400, "unknown parameter 'limits'"),
        ("GET", "/requests?api=Produse", None, 400, "did you mean 'Produce'?"),
    ],
)
def test_bad_input(control: Control, method: str, path: str, body: Any, status: int, error: str) -> None:
    found, shown = control(method, path, body)
    assert found == status, shown
    assert error in shown["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 403),
        ({"Sec_Fetch_Site": "none"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:80"}, 403),
        ({"Host": "10.0.0.1"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "[::"}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:1"}, 200),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_requests_of_web_pages_are_refused(control: Control, headers: dict[str, str], status: int) -> None:
    assert control("POST", "/requests/wait", {"api": "Metadata", "timeout_ms": 0}, **headers)[0] in (
        {200: (408,)}.get(status, (status,))
    )
    if "Content_Type" not in headers:
        assert control("GET", "/faults", **headers)[0] == status


def test_a_page_cannot_ask_for_permission(control: Control) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", control.port, timeout=HANG_S)
    connection.request("OPTIONS", "/faults", headers={"Access-Control-Request-Method": "POST"})
    response = connection.getresponse()
    assert response.status == 501
    assert not [name for name, _ in response.getheaders() if name.lower().startswith("access-control")]
    connection.close()


def exchange(control: Control, data: bytes) -> bytes:
    """Send bytes, end the sending side, and return all that is received."""
    with socket.create_connection(("127.0.0.1", control.port), timeout=HANG_S) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        received = b""
        while part := sock.recv(1 << 16):
            received += part
    return received


@pytest.mark.parametrize(
    ("length", "body", "status"),
    [
        (b"1048577", b"", b"413"),
        (b"9" * 30, b"", b"413"),
        (b"-1", b"", b"400"),
        (b"x", b"", b"400"),
        (b"10", b"{}", b"400"),
        (b"1", b"{", b"400"),
        (b"20000", b"[" * 20000, b"400"),
        (b"11", b'{"a": "\xff\xfe"}', b"400"),
        (b"2\r\nContent-Length: 0", b"{}", b"400"),
        (b"2\r\nHost: localhost", b"{}", b"400"),
        (b"0\r\nTransfer-Encoding: chunked", b"", b"411"),
    ],
)
def test_hostile_bodies(control: Control, length: bytes, body: bytes, status: bytes) -> None:
    head = b"POST /faults HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + length
    received = exchange(control, head + b"\r\nConnection: close\r\n\r\n" + body)
    assert received.startswith(b"HTTP/1.1 " + status), received


def test_any_json_is_answered(control: Control) -> None:
    """Values of wrong types are errors of the sender, never of the server."""
    drawn = random.Random(5)
    values = [
        None,
        True,
        -1,
        2**70,
        1.5,
        "",
        "x",
        "Fetch",
        [],
        [1, "a"],
        {},
        {"a": [None]},
        "*",
        {"topics": [{"a": 1}]},
    ]
    of_effects = [
        *("api", "error", "response", "changes", "throttle_ms"),
        *("delay_ms", "sent_bytes", "bytes_per_second", "whole", "after"),
    ]
    names = [*of_effects, *CONDITIONS]
    for _ in range(400):
        body = {"effect": drawn.choice(list(Kind)), "api": "Metadata"}
        body |= {name: drawn.choice(values) for name in drawn.sample(names, drawn.randint(0, 4))}
        status, shown = control("POST", "/faults", body)
        assert status in (200, 400), (body, shown)
    control("DELETE", "/faults")


def test_a_client_that_stalls_holds_up_nobody(control: Control, raw: RawClient) -> None:
    stalled = [socket.create_connection(("127.0.0.1", control.port)) for _ in range(10)]
    for sock in stalled:
        sock.sendall(b"POST /faults HTTP/1.1\r\nContent-Le")
    path = control.fault(effect="observe", api="Metadata")
    waiting = threading.Thread(target=control, args=("POST", f"{path}/wait", {"timeout_ms": HANG_MS}))
    waiting.start()
    assert raw.ask(message("MetadataRequest", topics=[]), 9).brokers
    waiting.join()
    for sock in stalled:
        sock.close()


def test_the_number_of_connections_is_limited(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    with ControlServer(broker) as listening:
        control = Control(listening)
        held = [socket.create_connection(("127.0.0.1", control.port)) for _ in range(2)]
        with socket.create_connection(("127.0.0.1", control.port), timeout=HANG_S) as third:
            third.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            received = b""
            while part := third.recv(1 << 16):
                received += part
        for sock in held:
            sock.close()
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503"), received
        assert json.loads(body) == {"error": "there are 2 connections, the most that can be: try again"}


def test_requests_that_wait_leave_connections_to_others(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_WAITS", 2)
    with ControlServer(broker) as listening:
        control = Control(listening)
        path = control.fault(effect="observe", api="Heartbeat")
        found: list[int] = []
        short = {"timeout_ms": 1}

        def wait() -> None:
            status = 503
            while status == 503:  # while one of the short requests waits
                status, _ = control("POST", f"{path}/wait", {"timeout_ms": HANG_MS})
            found.append(status)

        waits = [threading.Thread(target=wait) for _ in range(2)]
        for each in waits:
            each.start()
        until(lambda: control("POST", f"{path}/wait", short)[0] == 503, "the third request may wait")
        status, refused = control("POST", f"{path}/wait", short)
        assert (status, refused) == (503, {"error": "2 requests wait, the most that can: try again when one has ended"})
        assert control("GET", path)[0] == 200
        with RawClient(broker) as raw:
            raw.ask(message("HeartbeatRequest", group_id="g"), 4)
        for each in waits:
            each.join(HANG_S)
        assert found == [200, 200]
        assert control("POST", f"{path}/wait", short)[0] == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/faults/{id}/wait", b'{"timeout_ms": 600000}'),
        ("/requests/wait", b'{"api": "Heartbeat", "timeout_ms": 600000}'),
        ("/groups/billing/wait", b'{"timeout_ms": 600000}'),
    ],
)
def test_a_wait_ends_when_its_client_has_left(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, path: str, body: bytes
) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 1)
    fault = broker.faults.observe("Heartbeat")
    broker.requests.clear()
    with ControlServer(broker) as listening:
        control = Control(listening)
        head = f"POST {path.format(id=fault.number)} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", control.port)) as sock:
            sock.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert control("GET", "/")[0] == 503
        until(lambda: control("GET", "/")[0] == 200, "the wait still has its connection")


def test_a_request_has_a_deadline(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends a byte now and then does not keep its connection."""
    monkeypatch.setattr(server, "REQUEST_S", 0.5)
    for head, status in ((b"", b""), (b"\r\nContent-Length: 1000000\r\n\r\n", b"HTTP/1.1 408")):
        with socket.create_connection(("127.0.0.1", control.port), timeout=0.05) as sock:
            sock.sendall(b"POST /faults HTTP/1.1\r\nHost: localhost" + head)
            ended = time.monotonic() + HANG_S
            received = None
            while received is None and time.monotonic() < ended:
                try:
                    sock.sendall(b"a")
                    received = sock.recv(100)
                except TimeoutError:
                    continue
                except OSError:  # reset, as it has sent more
                    received = status
            assert received is not None, "the connection is still open"
            assert received.startswith(status)


def test_many_connections_at_once_are_accepted(broker: Broker) -> None:
    """They wait in the queue until they are accepted: none is reset."""
    with ControlServer(broker) as listening:
        assert listening._server is not None
        port = Control(listening).port
        listening._server.shutdown()  # nothing is accepted any more
        sockets = [socket.create_connection(("127.0.0.1", port), timeout=HANG_S) for _ in range(100)]
        for sock in sockets:
            sock.close()


def test_a_stopped_broker_says_so(control: Control, broker: Broker) -> None:
    broker.stop()
    try:
        assert control("GET", "/topics") == (503, {"error": "the broker is not running"})
    finally:
        broker.start()
    assert control("GET", "/topics")[0] == 200


def test_the_address_must_be_available(listening: ControlServer, broker: Broker) -> None:
    port = Control(listening).port
    with pytest.raises(OptionError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
        ControlServer(broker, port=port).__enter__()
    with pytest.raises(OptionError, match="the control server is not running"):
        ControlServer(broker).address  # noqa: B018


def test_the_description_names_every_route(control: Control) -> None:
    status, described = control("GET", "/openapi.json")
    assert (status, described["openapi"]) == (200, "3.1.0")
    named = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert named == {(route.method, route.path) for route in ROUTES}
    body = described["paths"]["/faults"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["effect"]["enum"] == [kind.value for kind in Kind]
    assert set(CONDITIONS) <= body["properties"].keys()
