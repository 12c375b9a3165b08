"""Registries over HTTP, in folders and in topics."""

from __future__ import annotations

import base64
import json
import pickle
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.dripping_server import DrippingServer
from tests.log.writing import record
from tests.schemas.registry_server import RegistryServer, serve
from tests.waiting import HANG_S

from kwire import records
from kwire.errors import InvalidSchema, KwireError, LogError, OptionError, RegistryError, UnknownSchema
from kwire.schemas import Reference, Registry, subject_name
from kwire.schemas.entries import _with_versions
from kwire.schemas.registered import MAX_SCHEMA_CHARACTERS, RegisteredSchema, schema_from_json

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
GUID = "8f2b3a74-1d5e-4c5f-9b7a-0123456789ab"


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with serve() as running:
        yield running


def opened(server: RegistryServer, **settings: Any) -> Registry:
    return Registry(server.url, **({"retries": 0, "timeout_s": 5} | settings))


def test_schemas_are_found_by_id_guid_and_version(server: RegistryServer) -> None:
    server.add("orders-value", ORDER, guid=GUID)
    server.add("a/b c-value", '"string"')
    registry = opened(server)
    assert registry.schema(1).text == ORDER
    assert (registry.schema(GUID.upper()).text, registry.schema(GUID).guid) == (ORDER, GUID)
    assert registry.subjects() == ["a/b c-value", "orders-value"]
    assert registry.versions("a/b c-value") == [1]
    assert registry.latest("a/b c-value").id == 2  # the subject is quoted in the path
    assert registry.version("orders-value", 1).label == "id 1 of 'orders-value' version 1"
    assert registry.find("orders-value", ORDER).id == 1
    assert registry.register("new", '"int"').id == 3
    assert [subject_name("t"), subject_name("t", key=True)] == ["t-value", "t-key"]


def test_a_schema_is_requested_once_also_by_tasks_of_one_process(server: RegistryServer) -> None:
    server.add("orders-value", ORDER)
    registry = opened(server)
    first, second = (pickle.loads(pickle.dumps(registry)) for _ in range(2))
    for each in (first, second, first):
        assert each.schema(1).text == ORDER
    assert first is second
    assert server.requests == ["/schemas/ids/1"]


def test_an_unknown_id_is_requested_once(server: RegistryServer) -> None:
    registry = opened(server)
    for _ in range(3):
        with pytest.raises(UnknownSchema, match=r"localhost:\d+: unknown schema id 9 \(status 404: Schema not found\)"):
            registry.schema(9)
    assert server.requests == ["/schemas/ids/9"]


def test_many_unknown_ids_are_an_error_instead_of_requests(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that only look like those of a registry may have 100,000 ids."""
    monkeypatch.setattr("kwire.schemas.registry.MAX_UNKNOWN", 3)
    server.add("orders-value", ORDER)
    registry = opened(server)
    for schema_id in (7, 8, 9):
        with pytest.raises(UnknownSchema):
            registry.schema(schema_id)
    assert len(server.requests) == 3
    for schema_id in (10, 1):  # it cannot be told whether they are known
        with pytest.raises(
            RegistryError, match="3 schema ids of the last 30 seconds are unknown, such as 9: "
        ) as caught:
            registry.schema(schema_id)
        assert not isinstance(caught.value, UnknownSchema)  # which would be a bad value
    with pytest.raises(UnknownSchema):
        registry.schema(7)
    assert len(server.requests) == 3
    now = time.monotonic()
    monkeypatch.setattr("kwire.schemas.registry.time.monotonic", lambda: now + 31)
    assert registry.schema(1).text == ORDER
    with pytest.raises(UnknownSchema):
        registry.schema(10)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lambda r: r.latest("x"), "unknown subject 'x' "),
        (lambda r: r.version("x", 2), "unknown subject 'x' or its version 2 "),
        (lambda r: r.find("x", ORDER), "unknown schema under subject 'x'; register it with Registry.register"),
        (lambda r: r.schema(GUID), f"unknown schema GUID {GUID}"),
    ],
)
def test_what_a_registry_does_not_know_is_named(
    server: RegistryServer, request_: Callable[[Registry], object], message: str
) -> None:
    with pytest.raises(UnknownSchema, match=message):
        request_(opened(server))


def test_a_registry_that_is_busy_is_asked_again(server: RegistryServer) -> None:
    server.add("orders-value", ORDER)
    server.answer_first = [(503, b""), (429, b""), (500, b"")]
    assert opened(server, retries=3).schema(1).text == ORDER
    assert len(server.requests) == 4


def test_a_registry_that_stays_busy_is_an_error_after_the_retries(server: RegistryServer) -> None:
    server.answer_first = [(503, b"")] * 10
    with pytest.raises(RegistryError, match=r"cannot be used: http://localhost:.*: status 503") as caught:
        opened(server, retries=2).schema(1)
    assert len(server.requests) == 3
    assert not isinstance(caught.value, UnknownSchema)


def test_a_registry_that_is_down_is_not_an_unknown_schema() -> None:
    with serve() as server:
        url = server.url
    with pytest.raises(RegistryError, match=r"cannot be used: .*Connection refused") as caught:
        Registry(url, retries=1).schema(1)
    assert not isinstance(caught.value, UnknownSchema)


def test_the_next_url_serves_while_the_first_is_down(server: RegistryServer) -> None:
    server.add("orders-value", ORDER)
    assert Registry(f"http://localhost:1,{server.url}", retries=0).schema(1).text == ORDER


def test_credentials_are_sent_and_never_shown(server: RegistryServer) -> None:
    server.add("orders-value", ORDER)
    server.required = "Basic " + base64.b64encode(b"ann:s3cr:t").decode()
    assert opened(server, basic_auth_user_info="ann:s3cr:t").schema(1).text == ORDER
    in_url = Registry(server.url.replace("http://", "http://ann:s3cr%3At@"), retries=0)
    assert in_url.schema(1).text == ORDER
    assert "s3cr" not in repr(in_url)
    server.required = "Bearer t0ken"
    assert opened(server, bearer_auth_token="t0ken").schema(1).text == ORDER
    with pytest.raises(RegistryError, match="status 401, not authorized; check basic_auth_user_info") as caught:
        opened(server, basic_auth_user_info="ann:wr0ng").schema(1)
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "response is not JSON; is it the URL of a registry"),
        (b"[" * 200_000, "response is not JSON"),
        (b"{}", "expected an object with the text 'schema'"),
        (b'{"schema": 5}', "expected an object with the text 'schema'"),
        (b'{"schema": "x", "schemaType": "THRIFT"}', "schemaType 'THRIFT' is not one of AVRO, PROTOBUF, JSON"),
        (b'{"schema": "x", "references": {"a": 1}}', "'references' is not a list"),
        (b'{"schema": "x", "references": [{"name": "x"}]}', "a reference lacks name, subject or version"),
        (b'{"schema": "x", "version": "1"}', "'version' is not a number"),
        (b'{"schema": "' + b"x" * (MAX_SCHEMA_CHARACTERS + 1) + b'"}', "characters, the limit is"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_invalid_responses_are_errors(server: RegistryServer, body: bytes, message: str) -> None:
    server.answer_first = [(200, body)]
    with pytest.raises(RegistryError, match=message):
        opened(server).schema(1)


def test_another_web_server_is_no_registry(server: RegistryServer) -> None:
    with pytest.raises(RegistryError, match=r"status 404.*is it the URL of a registry") as caught:
        Registry(f"{server.url}/wrong", retries=0).schema(1)
    assert not isinstance(caught.value, UnknownSchema)


def test_an_endless_response_ends(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 65536)
        except OSError:
            handler.close_connection = True

    monkeypatch.setattr("kwire.schemas.http.MAX_RESPONSE_BYTES", 1 << 20)
    server.answer_first = [endless]
    with pytest.raises(RegistryError, match="response larger than"):
        opened(server).schema(1)


@pytest.mark.parametrize("size", [4095, 4096, 4097])
def test_a_response_may_have_as_many_bytes_as_the_limit(
    size: int, server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.schemas.http.MAX_RESPONSE_BYTES", 4096)
    body = json.dumps({"schema": '"string"'}).encode()
    server.answer_first = [(200, body + b" " * (size - len(body)))]
    if size > 4096:
        with pytest.raises(RegistryError, match="response larger than 4096 bytes"):
            opened(server).schema(1)
    else:
        assert opened(server).schema(1).text == '"string"'


def test_a_status_that_is_no_success_is_an_error(server: RegistryServer) -> None:
    body = json.dumps({"schema": '"string"'}).encode()
    server.answer_first = [(299, body), (300, body)]
    assert opened(server).schema(1).text == '"string"'
    with pytest.raises(RegistryError, match="status 300"):
        opened(server).schema(1)


def test_a_silent_registry_is_an_error_after_the_timeout(server: RegistryServer) -> None:
    done = threading.Event()
    server.answer_first = [lambda handler: (done.wait(30), setattr(handler, "close_connection", True))[1]]
    try:
        with pytest.raises(RegistryError, match=r"cannot be used: .*timed out"):
            opened(server, timeout_s=0.2).schema(1)
    finally:
        done.set()


@pytest.mark.parametrize(
    ("whole", "slow"),
    [
        (b"HTTP/1.1 ", b"2"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
)
def test_a_registry_that_drips_is_an_error_after_the_timeout(whole: bytes, slow: bytes) -> None:
    with DrippingServer(whole, slow) as server:
        registry = Registry(f"http://127.0.0.1:{server.port}", retries=0, timeout_s=0.6)
        begin = time.monotonic()
        with pytest.raises(RegistryError, match=r"cannot be used: .*timed out"):
            registry.schema(1)
        assert 0.5 < time.monotonic() - begin < HANG_S / 4


def test_a_registry_that_drips_inside_tls_is_an_error_after_the_timeout(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("localhost").configure_cert(context)
    with DrippingServer(b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n", context=context) as server:
        url, ca = f"https://localhost:{server.port}", str(tmp_path / "ca.pem")
        with pytest.raises(RegistryError, match=r"cannot be used: .*timed out"):
            Registry(url, retries=0, timeout_s=2, ssl_ca_location=ca).schema(1)
        assert server.requests == 1


def test_schemas_are_kept_in_a_folder_between_processes(server: RegistryServer, tmp_path: Path) -> None:
    server.add("orders-value", ORDER, references=[{"name": "x", "subject": "s", "version": 1}])
    folder = tmp_path / "cache"
    first = opened(server, cache=str(folder)).schema(1)
    assert opened(server, cache=str(folder)).schema(1) == first
    assert len(server.requests) == 1
    (file,) = folder.iterdir()
    file.write_bytes(b"{")  # a damaged file costs a request
    assert opened(server, cache=str(folder)).schema(1) == first
    assert len(server.requests) == 2
    read_only = tmp_path / "file"
    read_only.touch()
    assert opened(server, cache=str(read_only)).schema(1) == first


def test_a_cache_folder_is_a_registry(server: RegistryServer, tmp_path: Path) -> None:
    server.add("orders-value", ORDER)
    opened(server, cache=str(tmp_path)).schema(1)
    assert Registry(tmp_path).schema(1).text == ORDER


def test_references_come_before_what_uses_them(server: RegistryServer) -> None:
    server.add("c", '"c"')
    server.add("b", '"b"', references=[{"name": "C", "subject": "c", "version": 1}])
    uses = [{"name": "B", "subject": "b", "version": 1}, {"name": "C", "subject": "c", "version": 1}]
    server.add("a", '"a"', references=uses)
    registry = opened(server)
    assert list(registry.references(registry.latest("a")).items()) == [("C", '"c"'), ("B", '"b"')]


def test_circular_references_are_an_error(server: RegistryServer) -> None:
    server.add("a", '"a"', references=[{"name": "B", "subject": "b", "version": 1}])
    server.add("b", '"b"', references=[{"name": "A", "subject": "a", "version": 1}])
    registry = opened(server)
    with pytest.raises(InvalidSchema, match="circular references: B -> A -> B"):
        registry.references(registry.latest("a"))


@pytest.mark.parametrize(("depth", "is_accepted"), [(3, True), (4, False)])
def test_references_have_a_limited_depth(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch, depth: int, is_accepted: bool
) -> None:
    monkeypatch.setattr("kwire.schemas.registry.MAX_REFERENCE_DEPTH", 3)
    for level in range(depth):
        used = {"name": f"N{level + 1}", "subject": f"s{level + 1}", "version": 1}
        server.add(f"s{level}", f'"{level}"', references=[used])
    server.add(f"s{depth}", f'"{depth}"')
    registry = opened(server)
    if is_accepted:
        assert len(registry.references(registry.latest("s0"))) == depth
    else:
        with pytest.raises(InvalidSchema, match="references more than 3 deep"):
            registry.references(registry.latest("s0"))


def test_a_missing_reference_is_an_unknown_schema(server: RegistryServer) -> None:
    server.add("a", '"a"', references=[{"name": "B", "subject": "b", "version": 7}])
    registry = opened(server)
    with pytest.raises(UnknownSchema, match="'b' or its version 7"):
        registry.references(registry.latest("a"))


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """The context of a server that asks for a client's certificate, and a folder with ca.pem, cert.pem and key.pem."""
    root, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    issued, client = authority.issue_cert("localhost"), authority.issue_cert("client@example.org")
    authority.cert_pem.write_to_path(root / "ca.pem")
    client.private_key_pem.write_to_path(root / "key.pem")
    client.cert_chain_pems[0].write_to_path(root / "cert.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context, root


def test_tls_checks_both_sides(tls: tuple[ssl.SSLContext, Path]) -> None:
    context, root = tls
    certificate = {"ssl_certificate_location": str(root / "cert.pem"), "ssl_key_location": str(root / "key.pem")}
    with serve(context) as server:
        server.add("orders-value", ORDER)
        trusting = opened(server, ssl_ca_location=str(root / "ca.pem"), **certificate)
        assert trusting.schema(1).text == ORDER
        with pytest.raises(RegistryError, match="certificate verify failed"):
            opened(server, **certificate).schema(1)
        with pytest.raises(RegistryError, match="cannot be used"):
            opened(server, ssl_ca_location=str(root / "ca.pem")).schema(1)


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        ("http://h", {"timeouts": 1}, "unknown setting of a schema registry 'timeouts' .did you mean 'timeout_s'"),
        ("http://h", {"retries": "x"}, "retries: expected int, got str"),
        ("http://h", {"timeout_s": 0}, "timeout_s has to be above 0"),
        ("http://h", {"basic_auth_user_info": "ann"}, "basic_auth_user_info: expected USER:PASSWORD"),
        ("http://h", {"basic_auth_user_info": "a:b", "bearer_auth_token": "c"}, "mutually exclusive"),
        ("http://h", {"ssl_key_location": "k"}, "ssl_key_location requires ssl_certificate_location"),
        ("http://h", {"ssl_ca_location": "/missing.pem"}, "ssl_ca_location: /missing.pem: No such file"),
        ("http://", {}, "expected http://HOST"),
        ("ftp://h", {}, "expected http://HOST"),
        ("http://u:secret@h?x=1", {}, "'http://h.x=1': expected http://HOST"),
        ("http://u:secret@[h", {}, r"'http://\[h': expected http://HOST"),
        ("http://u:a@h,http://v:b@g", {}, "http://h,http://g: the URLs have different users"),
        ("http://u:a@h", {"bearer_auth_token": "b"}, "bearer_auth_token: the URL has a user already"),
        ("http://u:a@h", {"basic_auth_user_info": "u:b"}, "basic_auth_user_info: the URL has a user already"),
    ],
)
def test_invalid_settings_are_rejected(url: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Registry(url, **settings)


def test_settings_of_tls_are_refused_for_registries_without_it(tmp_path: Path) -> None:
    ca = str(tmp_path / "ca.pem")
    trustme.CA().cert_pem.write_to_path(ca)
    with pytest.raises(OptionError, match="ssl_ca_location: connections to http://h,http://g are not encrypted"):
        Registry("http://h,http://u:secret@g", ssl_ca_location=ca)
    assert Registry("http://h,HTTPS://g", ssl_ca_location=ca).location == "http://h,HTTPS://g"


def test_files_of_a_folder_have_ids_subjects_and_versions_in_their_names(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "orders-value.2.7.avsc").write_text(ORDER)
    (tmp_path / "orders-value.1.3.avsc").write_text('"long"')
    (tmp_path / "a.b-value.9.proto").write_text('syntax = "proto3"; import "x/y.proto"; message A { }')
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "y.proto").write_text('syntax = "proto3";')
    (tmp_path / "11.schema.json").write_text("{}")
    (tmp_path / "12.json").write_text(json.dumps({"schema": '"int"'}))
    entries = [{"subject": "e", "version": v, "id": 20 + v, "schema": f'"{v}"', "guid": GUID} for v in (1, 2)]
    entries[1]["guid"] = None
    (tmp_path / "all.json").write_text(json.dumps(entries))
    (tmp_path / "README.md").write_text("not a schema")
    registry = Registry(tmp_path)
    assert registry.latest("orders-value").id == 7
    assert registry.versions("orders-value") == [1, 2]
    assert registry.latest("a.b-value").references == (Reference("x/y.proto", "x/y.proto", 1),)
    assert registry.references(registry.schema(9)) == {"x/y.proto": 'syntax = "proto3";'}
    assert [registry.schema(i).type for i in (3, 9, 11, 12)] == ["AVRO", "PROTOBUF", "JSON", "AVRO"]
    assert (registry.schema(GUID).id, registry.latest("e").id) == (21, 22)
    assert registry.find("orders-value", json.dumps(json.loads(ORDER), indent=1)).id == 7
    assert pickle.loads(pickle.dumps(registry)).schema(7).text == ORDER


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("1.json", "{", "1.json: not JSON"),
        ("1.json", "[5]", "1.json: not a schema of a registry"),
        ("1.avsc", b"\xff", "1.avsc: cannot be read"),
        ("note.txt", "", "no schemas; expected"),
    ],
)
def test_unusable_files_are_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RegistryError, match=message):
        Registry(tmp_path)


def test_faults_of_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="missing: no such folder"):
        Registry(tmp_path / "missing")
    with pytest.raises(RegistryError, match="x: no such folder"):
        Registry(tmp_path / ("x" * 256))  # Path.is_dir raises OSError up to Python 3.13
    (tmp_path / "1.avsc").write_text('"int"')
    with pytest.raises(OptionError, match="retries: only for the URL of a registry"):
        Registry(tmp_path, retries=1)
    registry = Registry(tmp_path)
    with pytest.raises(UnknownSchema, match="unknown schema id 2"):
        registry.schema(2)
    with pytest.raises(RegistryError, match="can be registered through the registry's URL only"):
        registry.register("x", '"int"')
    (tmp_path / "s.1.avsc").write_text('"long"')
    with pytest.raises(RegistryError, match="two schemas have the id 1"):
        Registry(tmp_path)


def schemas_topic(root: Path, *rows: tuple[object, object]) -> str:
    """Write a log directory with the topic `_schemas`, as a registry does."""

    def text(value: object) -> bytes | None:
        return None if value is None else json.dumps(value).encode()

    empty = record(b"")
    fields = {name: getattr(empty, name) for name in ("offset", "timestamp", "timestamp_type", "headers")}
    written = [
        records.Record(key=key if isinstance(key, bytes) else text(key), value=text(value), **fields)
        for key, value in rows
    ]
    (root / "_schemas-0").mkdir()
    (root / "_schemas-0" / f"{0:020}.log").write_bytes(records.write_batch(written))
    return str(root)


def key_of(subject: str, version: int) -> dict[str, object]:
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}


def value_of(subject: str, version: int, number: int, schema: str, **more: object) -> dict[str, object]:
    return {"subject": subject, "version": version, "id": number, "schema": schema, "deleted": False, **more}


def test_the_topic_of_a_registry_is_a_registry(tmp_path: Path) -> None:
    md5 = base64.b64encode(uuid.UUID(GUID).bytes).decode()
    location = schemas_topic(
        tmp_path,
        ({"keytype": "NOOP", "magic": 0}, None),
        ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "BACKWARD"}),
        (key_of("a", 1), value_of("a", 1, 1, '"int"', md5=md5)),
        (key_of("a", 2), value_of("a", 2, 2, '"long"')),
        (key_of("a", 2), value_of("a", 2, 2, '"long"', deleted=True)),
        (key_of("b", 1), value_of("b", 1, 3, "{}", schemaType="JSON")),
        ({"keytype": "DELETE_SUBJECT", "subject": "b", "magic": 0}, {"subject": "b", "version": 1}),
        (key_of("c", 1), value_of("c", 1, 4, '"string"')),
        (key_of("c", 1), None),
    )
    registry = Registry.from_topic(location)
    assert (registry.subjects(), registry.versions("a")) == (["a"], [1])
    assert [registry.schema(i).text for i in (1, 2, 3)] == ['"int"', '"long"', "{}"]  # deleted ones keep their ids
    assert registry.version("a", 2).id == 2  # references name deleted versions too
    assert registry.schema(GUID).id == 1
    with pytest.raises(UnknownSchema, match="unknown schema id 4"):
        registry.schema(4)
    with pytest.raises(UnknownSchema, match="unknown subject 'b'"):
        registry.latest("b")
    assert pickle.loads(pickle.dumps(registry)).schema(1).text == '"int"'


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (key_of("a", 1), {"schema": 1}, "offset 0: not a schema of a registry"),
        (key_of("a", 1), value_of("a", 1, 1, "x", __enc__="key"), "offset 0: the schema is encrypted"),
        (b"{", {}, "offset 0: not a record of a schema registry: expected JSON"),
        ([1], {}, "offset 0: not a record of a schema registry: expected a JSON object"),
    ],
)
def test_records_of_other_topics_are_an_error(tmp_path: Path, key: object, value: object, message: str) -> None:
    with pytest.raises(RegistryError, match=message):
        Registry.from_topic(schemas_topic(tmp_path, (key, value)))


def test_a_log_directory_without_the_topic_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    with pytest.raises(LogError, match="expected one partition of the topic _schemas, found 0"):
        Registry.from_topic(str(tmp_path))


def test_errors_of_registries_can_be_pickled() -> None:
    for error in (RegistryError("down", "http://h"), UnknownSchema("unknown schema id 9", "http://h")):
        copy: KwireError = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


def test_a_schema_has_the_form_of_the_rest_api() -> None:
    schema = RegisteredSchema(text=ORDER, id=1, subject="s", version=2, references=(Reference("x", "y", 1),))
    assert schema_from_json(schema.to_json(), "here") == schema


def test_a_schema_may_have_as_many_characters_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.schemas.registered.MAX_SCHEMA_CHARACTERS", 8)
    assert schema_from_json({"schema": '"string"'}, "here").text == '"string"'
    with pytest.raises(RegistryError, match="the text has 9 characters, the limit is 8"):
        schema_from_json({"schema": ' "string"'}, "here")


def test_files_without_a_version_are_numbered_from_1_on(tmp_path: Path) -> None:
    for schema_id in (7, 8):
        (tmp_path / f"orders-value.id{schema_id}.avsc").write_text(ORDER)
    entries = [RegisteredSchema(text=ORDER, subject="orders-value", id=number) for number in (8, 7)]
    assert [(each.id, each.version) for each in _with_versions(entries, "here")] == [(7, 1), (8, 2)]
