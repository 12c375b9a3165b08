"""Sources of tokens, and errors without one."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from kwire.client import ClientSettings
from kwire.client.oauthbearer import WITHOUT_EXPIRY_S, TokenSource, expiry_of, unsecured_token
from kwire.client.sasl import oauthbearer
from kwire.errors import BrokerError, OptionError
from tests.dripping_server import DrippingServer
from tests.waiting import HANG_S

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def settings(**given: Any) -> ClientSettings:
    base = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    return ClientSettings.parse(base | {name.replace("_", "."): value for name, value in given.items()})


def token_of(**given: Any) -> str:
    source = settings(**given).token_source
    assert source is not None
    return source.token()


class Granting(BaseHTTPRequestHandler):
    """A token endpoint for the client kwire with the secret s3:cret."""

    forms: list[dict[str, str]]

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.forms.append(dict(urllib.parse.parse_qsl(form)))
        known = self.headers["Authorization"] == "Basic a3dpcmU6czM6Y3JldA=="
        granted = unsecured_token({"sub": "kwire", "exp": time.time() + 3600, "n": len(self.forms)})
        response = {"access_token": granted, "token_type": "Bearer"} if known else {"error": "invalid_client"}
        body = b"not json" if self.path == "/broken" else json.dumps({} if self.path == "/empty" else response).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    Granting.forms = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Granting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_first_message_matches_the_rfc() -> None:
    exchange = oauthbearer("vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==", {"host": "server.example.com", "port": "143"})
    assert next(exchange) == (
        b"n,,\x01auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01host=server.example.com\x01port=143\x01\x01"
    )
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_a_refused_token_is_acknowledged_and_the_reason_is_raised() -> None:
    exchange = oauthbearer("t", {})
    next(exchange)
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(
        BrokerError, match=r'the broker refused the token \(\{"status":"invalid_token"\}\): a:1: no'
    ) as caught:
        exchange.throw(BrokerError("a:1: no", 58))
    assert caught.value.code == 58


def test_a_token_in_the_environment_or_a_file_is_read_for_each_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "to ken"
    in_file = settings(sasl_oauthbearer_token_endpoint_url=path.as_uri()).token_source
    in_environment = settings(sasl_oauthbearer_token_env="KWIRE_TEST_TOKEN").token_source
    assert in_file is not None
    assert in_environment is not None
    for token in ("first", "second"):
        path.write_text(f"{token}\n")
        monkeypatch.setenv("KWIRE_TEST_TOKEN", token)
        assert (in_file.token(), in_environment.token()) == (token, token)
    path.unlink()
    monkeypatch.delenv("KWIRE_TEST_TOKEN")
    with pytest.raises(OptionError, match=r"to ken cannot be read: .*No such file"):
        in_file.token()
    with pytest.raises(OptionError, match="environment variable KWIRE_TEST_TOKEN is not set"):
        in_environment.token()


def named_callback() -> str:
    return "by-name"


def test_a_token_callback_is_a_function_or_its_name() -> None:
    assert token_of(sasl_oauthbearer_token_callback=lambda: "direct") == "direct"
    assert token_of(sasl_oauthbearer_token_callback=f"{__name__}:named_callback") == "by-name"
    for wrong, message in (
        ("nothing", "expected module:function"),
        ("nosuch.module:f", "nosuch"),
        ("json:nope", "nope"),
    ):
        with pytest.raises(OptionError, match=message):
            settings(sasl_oauthbearer_token_callback=wrong)
    for wrong in ("", "a b", "a\x01auth=Bearer b", "ö"):
        with pytest.raises(OptionError, match="token is empty or invalid"):
            token_of(sasl_oauthbearer_token_callback=lambda: wrong)  # noqa: B023


@pytest.mark.parametrize("in_jaas", [True, False])
def test_a_token_for_client_credentials_is_cached(endpoint: str, in_jaas: bool) -> None:
    if in_jaas:
        given = {"sasl.jaas.config": f'{MODULE} clientId="kwire" clientSecret="s3:cret" scope=a extension_pool="p";'}
    else:
        prefix = "sasl.oauthbearer.client.credentials.client"
        given = {f"{prefix}.id": "kwire", f"{prefix}.secret": "s3:cret", "sasl.oauthbearer.scope": "a"}
    source = settings(**given, **{ENDPOINT: endpoint}).token_source
    assert source is not None
    token = source.token()
    assert expiry_of(token) is not None
    assert source.token() == token
    assert Granting.forms == [{"grant_type": "client_credentials", "scope": "a"}]
    assert source.extensions == ({"pool": "p"} if in_jaas else {})
    source._cached_until = 0  # most of the lifetime is over
    assert source.token() != token
    assert "cret" not in repr(source) + repr(settings(**given, **{ENDPOINT: endpoint}))


def test_a_cached_token_is_used_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = iter("ab")
    source = TokenSource(lambda: next(tokens), is_cached=True)
    for now, expected in ((0.0, "a"), (WITHOUT_EXPIRY_S - 1, "a"), (WITHOUT_EXPIRY_S, "b")):
        monkeypatch.setattr("kwire.client.oauthbearer.time.time", lambda now=now: now)
        assert source.token() == expected


@pytest.mark.parametrize("claims", ['{"exp": 1' + 400 * "0" + "}", 100_000 * "["])
def test_a_token_whose_expiry_is_no_time_has_none(claims: str) -> None:
    """An endpoint's token with such a number ended the client with OverflowError or RecursionError."""
    payload = base64.urlsafe_b64encode(claims.encode()).decode().rstrip("=")
    assert expiry_of(f"e30.{payload}.") is None


@pytest.mark.parametrize("given", [b"token", None, 5])
def test_a_token_callback_that_returns_no_text_is_an_error(given: Any) -> None:
    with pytest.raises(OptionError, match="token is empty or invalid: expected text"):
        TokenSource(lambda: given).token()


@pytest.mark.parametrize(
    ("path", "secret", "message"),
    [
        ("/", "hunter2", r"failed: HTTP 401 .*invalid_client"),
        ("/empty", "s3:cret", "has no access_token"),
        ("/broken", "s3:cret", "cannot get a token from http"),
    ],
)
def test_an_error_of_a_token_endpoint_does_not_show_the_secret(
    endpoint: str, path: str, secret: str, message: str
) -> None:
    jaas = f'{MODULE} clientId="kwire" clientSecret="{secret}";'
    with pytest.raises(OptionError, match=message) as caught:
        token_of(**{ENDPOINT: endpoint + path, "sasl.jaas.config": jaas})
    assert secret not in str(caught.value)


STATUS, OK = b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n"
SHORT = {
    "sasl.login.connect.timeout.ms": 5_000,
    "sasl.login.read.timeout.ms": 700,
    "sasl.jaas.config": f'{MODULE} clientId="kwire" clientSecret="s3:cret";',
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("whole", "slow"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (STATUS, b"2"),
        (OK, b"X-Slow: yes\r\n"),
        (OK + b"Content-Length: 500000\r\n\r\n", b" "),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (STATUS + b"500 No\r\n\r\n", b"no"),
    ],
)
def test_a_token_endpoint_that_drips_is_given_up(whole: bytes, slow: bytes) -> None:
    with DrippingServer(whole, slow) as server:
        begin = time.monotonic()
        with pytest.raises(OptionError, match=r"cannot get a token from http://127.0.0.1:\d+: .*timed out"):
            token_of(**{ENDPOINT: f"http://127.0.0.1:{server.port}"}, **SHORT)
        assert 0.6 < time.monotonic() - begin < HANG_S / 4
        assert server.requests == 1


def test_a_token_endpoint_that_drips_inside_tls_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with DrippingServer(OK, b"X-Slow: yes\r\n", context=context) as server:
        with pytest.raises(OptionError, match="timed out"):
            token_of(**{ENDPOINT: f"https://localhost:{server.port}"}, **SHORT)
        assert server.requests == 1


def test_a_slow_handshake_of_a_token_endpoint_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OptionError, match="timed out"):
            token_of(**{ENDPOINT: url}, **{**SHORT, "sasl.login.connect.timeout.ms": 300})


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n" * 9,
        b"",
        OK + b"X: " + b"y" * 70_000,
        OK + b"".join(b"X%d: y\r\n" % n for n in range(200)) + b"\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nnot a number\r\n",
        OK + b"Content-Length: 100\r\n\r\n{",
        OK + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
        OK + b"Content-Length: 3\r\n\r\n\xff\xfe\xfd",
    ],
)
def test_a_broken_response_of_a_token_endpoint_is_an_error(answer: bytes) -> None:
    def serve(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1 << 16)
            client.sendall(answer)
            client.shutdown(socket.SHUT_WR)
            client.recv(1 << 16)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        with pytest.raises(OptionError, match="cannot get a token from http") as caught:
            token_of(**{ENDPOINT: f"http://127.0.0.1:{listener.getsockname()[1]}"}, **SHORT)
    assert len(str(caught.value)) < 500


def test_a_choice_of_a_token_endpoint_is_no_token() -> None:
    """Status 300 is the first that is no success; its body need not be JSON."""

    def serve(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1 << 16)
            client.sendall(STATUS + b"300 Multiple Choices\r\nContent-Length: 4\r\n\r\nmany")
            client.recv(1 << 16)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        with pytest.raises(OptionError, match="failed: HTTP 300 many"):
            token_of(**{ENDPOINT: f"http://127.0.0.1:{listener.getsockname()[1]}"}, **SHORT)


class Redirecting(BaseHTTPRequestHandler):
    """Redirects /CODE to `target`, and remembers every request."""

    target: str
    requests: list[str]

    def do_POST(self) -> None:
        self.requests.append(f"{self.command} {self.path}")
        self.send_response(int(self.path[1:]))
        self.send_header("Location", self.target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.sampled
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("path", ["other", "same"])
def test_the_secret_does_not_follow_a_redirect(endpoint: str, code: int, path: str) -> None:
    Redirecting.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Redirecting.target = (
            endpoint.replace("//", "//u:hunter2@") + "/token?key=hunter2" if path == "other" else "/200"
        )
        url = f"http://127.0.0.1:{server.server_port}/{code}"
        jaas = f'{MODULE} clientId="kwire" clientSecret="s3:cret";'
        with pytest.raises(OptionError, match=r"redirects to '.*', which would get") as caught:
            token_of(**{ENDPOINT: url, "sasl.jaas.config": jaas})
        server.shutdown()
    assert Redirecting.requests == [f"POST /{code}"]
    assert Granting.forms == []
    assert "s3:cret" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no token source is set; set one of sasl.oauthbearer.token.env"),
        (
            {ENDPOINT: "file:/t", "sasl.oauthbearer.token.env": "T"},
            "several token sources are set .sasl.oauthbearer.token.env, sasl",
        ),
        ({ENDPOINT: "ftp://x"}, "expected a file:, http: or https: URL"),
        ({ENDPOINT: "http://[x"}, "expected a file:, http: or https: URL"),
        ({"sasl.oauthbearer.token.callback": ":f"}, "expected module:function"),
        ({"sasl.oauthbearer.token.callback": ".os:f"}, "'sasl.oauthbearer.token.callback': "),
        ({"sasl.oauthbearer.token.callback": "os:name"}, "os:name is not a function"),
        ({"sasl.oauthbearer.token.callback": "os:getpid"}, "token is empty or invalid"),
        ({ENDPOINT: "https://x"}, "credentials are missing; set sasl.oauthbearer.client.credentials.client.id"),
        ({"sasl.login.callback.handler.class": "com.example.Mine"}, "Java classes cannot be loaded"),
        ({"sasl.oauthbearer.jwt.retriever.class": "o.a.k.JwtBearerJwtRetriever"}, "Java classes cannot be loaded"),
        ({"sasl.oauthbearer.assertion.file": "/x"}, r"jwt-bearer grant\) are not supported"),
        (
            {"sasl.jaas.config": f"{MODULE} unsecuredLoginNumberClaim_n=x unsecuredLoginStringClaim_sub=a;"},
            "not a number",
        ),
    ],
)
def test_missing_and_unsupported_configs_are_errors(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        token_of(**given)


def test_options_of_tls_in_the_login_module_are_refused_and_others_without_effect_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    credentials = 'clientId="kwire" clientSecret="s3:cret" scope=a extension_pool=p'
    for option in ("ssl.truststore.location", "ssl.protocol"):
        for url in ("https://x", "file:///t"):
            jaas = f'{MODULE} {credentials} {option}="hidden";'
            with pytest.raises(OptionError, match=f"option {option} is not supported, .*SSL_CERT_FILE") as caught:
                settings(**{ENDPOINT: url, "sasl.jaas.config": jaas})
            assert "hidden" not in str(caught.value)
    for url, options, idle in (
        ("https://x", credentials, ""),
        ("HTTPS://x", credentials, ""),
        ("https://x", f"{credentials} client.Id=hidden clientid=hidden", "client.Id, clientid"),
        ("file:///t", credentials, "clientId, clientSecret, scope"),
        ("", "unsecuredLoginStringClaim_sub=a unsecuredLoginLifetimeSeconds=60", ""),
        ("", "unsecuredLoginStringClaim_sub=a unsecuredLoginLifetime=60", "unsecuredLoginLifetime"),
    ):
        caplog.clear()
        settings(**({ENDPOINT: url} if url else {}), **{"sasl.jaas.config": f"{MODULE} {options};"})
        expected = [f"config 'sasl.jaas.config': options without effect: {idle}"] if idle else []
        assert caplog.messages == expected


def test_kafkas_classes_are_accepted_and_other_mechanisms_ignore_token_configs() -> None:
    handler = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    retriever = "org.apache.kafka.common.security.oauthbearer.FileJwtRetriever"
    given = {"sasl.login.callback.handler.class": handler, "sasl.oauthbearer.jwt.retriever.class": retriever}
    assert settings(**given, **{ENDPOINT: "file:///t"}).token_source is not None
    plain = {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "b", ENDPOINT: "https://x"}
    assert settings(**plain).token_source is None
    assert settings(**{"security.protocol": "PLAINTEXT"}).token_source is None
