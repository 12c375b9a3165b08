"""SASL: handshakes, tokens, what a connection may do before its login, PLAIN, SCRAM, and the users of SCRAM."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kwire.client.sasl import parse, start
from kwire.conformance.broker.bench import Bench, User
from kwire.conformance.broker.checks import Allowed, Chapter
from kwire.conformance.broker.connection import Closed, RawConnection
from kwire.conformance.broker.requests import error_name, request
from kwire.conformance.broker.users import ITERATIONS, MECHANISMS, alter_users, new_user, upsertion
from kwire.errors import BrokerError

__all__ = ["chapter"]

chapter = Chapter("SASL")
CREDENTIALS, PLAIN, OWN_USERS = ("credentials",), ("PLAIN credentials",), ("own users",)
USES = {"SaslHandshake": 1, "SaslAuthenticate": 0}
USERS = {"AlterUserScramCredentials": 0, "DescribeUserScramCredentials": 0}
SCRAM_USES = {**USES, **USERS}
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
BEFORE_LOGIN = "SaslServerAuthenticator"
MAX_BEFORE_LOGIN = 524_288
"""sasl.server.max.receive.size, its default."""
NONCE = "rOprNGfwEbeRWgbNEkqO"


def _handshake(connection: RawConnection, mechanism: str, version: int = 1) -> Any:
    return connection.ask(request("SaslHandshake", version, mechanism=mechanism), version)


def _begun(bench: Bench, mechanism: str) -> RawConnection:
    """Return a connection that has chosen a mechanism."""
    connection = bench.connect(logs_in=False)
    _handshake(connection, mechanism)
    return connection


def _token(connection: RawConnection, data: bytes, version: int = 0) -> Any:
    return connection.ask(request("SaslAuthenticate", version, auth_bytes=data), version)


def _bare_token(connection: RawConnection, data: bytes) -> bytes:
    """Send a token in a frame without a header, as after SaslHandshake 0; returns the broker's."""
    connection.send_bytes(struct.pack(">i", len(data)) + data, "token sent")
    return connection.receive_frame()[4:]


def _outcome(connection: RawConnection, data: bytes) -> dict[str, Any]:
    """Send a token that fails; returns the error, and whether the connection is closed then."""
    try:
        body = _token(connection, data)
    except Closed:
        return {"error": "closed"}
    return {"error": error_name(body.error_code), "closed": connection.is_closed()}


def _plain(bench: Bench, name: str | None = None, password: str | None = None, authorization_id: str = "") -> bytes:
    """Return a token of PLAIN, by default with the given credentials."""
    settings = bench.session.settings
    parts = [authorization_id, name or settings.sasl_username or "", password or settings.sasl_password or ""]
    return "\0".join(parts).encode()


def _log_in(connection: RawConnection, user: User, change: Callable[[bytes], bytes] = bytes) -> Any:
    """Log in with SCRAM; returns the last response. change: of the client's last message."""
    exchange = start(user.mechanism, user.name, user.password)
    body = _token(connection, next(exchange))
    if body.error_code:
        return body
    return _token(connection, change(exchange.send(bytes(body.auth_bytes))))


def _can_log_in(bench: Bench, user: User) -> bool:
    try:
        bench.connect(user=user).close()
    except BrokerError:
        return False
    return True


# Handshakes


@chapter.check("LOGIN-001", "KIP-43", uses=USES, needs=CREDENTIALS)
def handshake(bench: Bench) -> Any:
    """SaslHandshake with an enabled mechanism has no error and lists it.

    Send SaslHandshake 1 with the mechanism of the given credentials.
    """
    mechanism = bench.session.settings.sasl_mechanism or ""
    body = _handshake(bench.connect(logs_in=False), mechanism)
    return {"error": error_name(body.error_code), "listed": mechanism in body.mechanisms}


@chapter.check("LOGIN-002", "KIP-43; SaslServerAuthenticator.handleHandshakeRequest", uses=USES, needs=CREDENTIALS)
def unknown_mechanism(bench: Bench) -> Any:
    """An unknown mechanism is refused, with the enabled ones, and the connection is closed.

    Send SaslHandshake 1 with the mechanism NO-SUCH.
    The error is UNSUPPORTED_SASL_MECHANISM.
    """
    connection = bench.connect(logs_in=False)
    body = _handshake(connection, "NO-SUCH")
    listed = (bench.session.settings.sasl_mechanism or "") in body.mechanisms
    return {"error": error_name(body.error_code), "listed": listed, "closed": connection.is_closed()}


@chapter.check("LOGIN-003", BEFORE_LOGIN, uses=USES, needs=CREDENTIALS)
def versions_first(bench: Bench) -> Any:
    """ApiVersions is served before the login, and SaslHandshake after it.

    Send ApiVersions 0 without a login, then SaslHandshake 1.
    Neither has an error.
    """
    connection = bench.connect(logs_in=False)
    first = connection.ask(request("ApiVersions", 0), 0)
    second = _handshake(connection, bench.session.settings.sasl_mechanism or "")
    return {"errors": [error_name(first.error_code), error_name(second.error_code)]}


@chapter.check("LOGIN-004", "KIP-511", uses=USES, needs=CREDENTIALS)
def too_new_versions_first(bench: Bench) -> Any:
    """ApiVersions of an unknown version has a response before the login, and may be sent again.

    Send ApiVersions 99 without a login, then ApiVersions 0, then SaslHandshake 1.
    The first has the error UNSUPPORTED_VERSION in the format of version 0, the others none.
    """
    connection = bench.connect(logs_in=False)
    frame, _ = connection.encode(request("ApiVersions", 3), 3)
    connection.send_bytes(frame[:6] + struct.pack(">h", 99) + frame[8:])
    first = connection.receive_frame(at_least=6)
    second = connection.ask(request("ApiVersions", 0), 0)
    third = _handshake(connection, bench.session.settings.sasl_mechanism or "")
    return {
        "errors": [
            error_name(int.from_bytes(first[8:10], signed=True)),
            *(error_name(each.error_code) for each in (second, third)),
        ]
    }


@chapter.check("LOGIN-005", BEFORE_LOGIN, uses={**USES, "Metadata": 1}, needs=CREDENTIALS)
def before_login(bench: Bench) -> Any:
    """Other requests before the login close the connection.

    Send Metadata 1 without a login, and on another connection SaslAuthenticate 0 without a handshake.
    The broker closes both connections without a response.
    """
    first, second = bench.connect(logs_in=False), bench.connect(logs_in=False)
    first.send(request("Metadata", 1, topics=[]), 1)
    second.send(request("SaslAuthenticate", 0, auth_bytes=b"\0a\0b"), 0)
    return {"closed": [first.is_closed(), second.is_closed()]}


@chapter.check("LOGIN-006", BEFORE_LOGIN, uses={**USES, "Metadata": 1}, needs=CREDENTIALS)
def between_handshake_and_token(bench: Bench) -> Any:
    """Another request between the handshake and the token is refused, and the connection closed.

    Send SaslHandshake 1, then Metadata 1.
    The response to Metadata is that of the release, and the connection is closed.
    """
    connection = _begun(bench, bench.session.settings.sasl_mechanism or "")
    connection.send(request("Metadata", 1, topics=[]), 1)
    try:
        connection.receive()
    except Closed:
        return {"response": False}
    return {"response": True, "closed": connection.is_closed()}


@chapter.check("LOGIN-007", "KafkaApis.handleSaslHandshakeRequest", uses=USES, needs=CREDENTIALS)
def after_login(bench: Bench) -> Any:
    """SaslHandshake and SaslAuthenticate after the login are refused.

    Log in, and send SaslHandshake 1 and SaslAuthenticate 0.
    Both have the error ILLEGAL_SASL_STATE, and the connection stays open.
    """
    connection = bench.connect()
    first = _handshake(connection, bench.session.settings.sasl_mechanism or "")
    second = _token(connection, b"")
    third = connection.ask(request("ApiVersions", 0), 0)
    return {"errors": [error_name(each.error_code) for each in (first, second, third)]}


@chapter.check("LOGIN-008", "CVE-2022-34917: sasl.server.max.receive.size", uses=USES, needs=CREDENTIALS)
def too_large(bench: Bench) -> Any:
    """A frame above sasl.server.max.receive.size closes a connection before its login.

    Send a length of 524,289 and 100 bytes without a login.
    The broker closes the connection, without waiting for more.
    """
    connection = bench.connect(logs_in=False)
    connection.send_bytes(struct.pack(">i", MAX_BEFORE_LOGIN + 1) + bytes(100))
    return {"closed": connection.is_closed()}


# PLAIN


@chapter.check("LOGIN-009", "KIP-152", uses=USES, needs=PLAIN)
def plain(bench: Bench) -> Any:
    """PLAIN with the right password logs in, in every version of SaslAuthenticate.

    Log in with the given credentials and each served version of SaslAuthenticate, and send ApiVersions.
    The response has no error, and an empty token.
    """
    found = []
    for version in range(bench.best("SaslAuthenticate", 2) + 1):
        connection = _begun(bench, "PLAIN")
        body = _token(connection, _plain(bench), version)
        then = connection.ask(request("ApiVersions", 0), 0)
        found.append([error_name(body.error_code), bytes(body.auth_bytes) == b"", error_name(then.error_code)])
    return {"right": [each == ["NONE", True, "NONE"] for each in found]}


@chapter.check("LOGIN-010", "KIP-43", uses={"SaslHandshake": 0}, needs=PLAIN)
def plain_without_headers(bench: Bench) -> Any:
    """After SaslHandshake 0, tokens are frames without headers.

    Send SaslHandshake 0, and the token of PLAIN in a separate frame, then ApiVersions.
    The broker's token is empty, and ApiVersions has no error.
    """
    connection = bench.connect(logs_in=False)
    first = _handshake(connection, "PLAIN", 0)
    token = _bare_token(connection, _plain(bench))
    then = connection.ask(request("ApiVersions", 0), 0)
    return {"errors": [error_name(first.error_code), error_name(then.error_code)], "token": token.hex()}


@chapter.check("LOGIN-011", "KIP-152", uses=USES, needs=PLAIN)
def wrong_password(bench: Bench) -> Any:
    """A wrong password and an unknown user have the same error, and the connection is closed.

    Send tokens of PLAIN with a wrong password, and with a user that does not exist.
    The error is SASL_AUTHENTICATION_FAILED.
    """
    tokens = [_plain(bench, password=bench.name("wrong")), _plain(bench, bench.name("nobody"))]
    return {"outcomes": [_outcome(_begun(bench, "PLAIN"), each) for each in tokens]}


@chapter.check("LOGIN-012", "KIP-43", uses={"SaslHandshake": 0}, needs=PLAIN)
def wrong_password_without_headers(bench: Bench) -> Any:
    """After SaslHandshake 0, a wrong password closes the connection without a response.

    Send SaslHandshake 0 and a token with a wrong password.
    """
    connection = bench.connect(logs_in=False)
    _handshake(connection, "PLAIN", 0)
    token = _plain(bench, password=bench.name("wrong"))
    connection.send_bytes(struct.pack(">i", len(token)) + token, "token sent")
    return {"closed": connection.is_closed()}


@chapter.check("LOGIN-013", "RFC 4616; PlainSaslServer", uses=USES, needs=PLAIN)
def authorization_id(bench: Bench) -> Any:
    """PLAIN accepts the user itself as authorization id, and nobody else.

    Log in with the user's own name as authorization id, then with another one.
    The second has the error SASL_AUTHENTICATION_FAILED.
    """
    name = bench.session.settings.sasl_username or ""
    own = _token(_begun(bench, "PLAIN"), _plain(bench, authorization_id=name))
    other = _outcome(_begun(bench, "PLAIN"), _plain(bench, authorization_id=bench.name("other")))
    return {"own": error_name(own.error_code), "other": other}


@chapter.check("LOGIN-014", "RFC 4616; PlainSaslServer", uses=USES, needs=PLAIN)
def malformed(bench: Bench) -> Any:
    """Tokens that are not those of PLAIN are refused.

    Send an empty token, one with 1 part, one with 4, one without a name, one without a password.
    The error is SASL_AUTHENTICATION_FAILED.
    """
    wrong = (b"", b"no parts", b"\0a\0b\0c", b"\0\0password", b"\0name\0")
    return {"outcomes": [_outcome(_begun(bench, "PLAIN"), each) for each in wrong]}


# SCRAM


def _logged_in(bench: Bench, mechanism: str) -> Any:
    user = new_user(bench, mechanism=mechanism)
    connection = _begun(bench, mechanism)
    exchange = start(mechanism, user.name, user.password)
    first = next(exchange)
    challenge = _token(connection, first)
    final = exchange.send(bytes(challenge.auth_bytes))
    last = _token(connection, final)
    try:
        exchange.send(bytes(last.auth_bytes))
        is_proven = False
    except StopIteration:
        is_proven = True  # the broker's signature is right
    fields = parse(bytes(challenge.auth_bytes))
    return {
        "errors": [error_name(challenge.error_code), error_name(last.error_code)],
        "fields": sorted(fields),
        "iterations": fields.get("i"),
        "proven": is_proven,
        "then": error_name(connection.ask(request("ApiVersions", 0), 0).error_code),
    }


@chapter.check("LOGIN-020", "KIP-84; RFC 5802, RFC 7677", uses=SCRAM_USES, needs=OWN_USERS)
def scram_256(bench: Bench) -> Any:
    """SCRAM-SHA-256 logs in, and the broker proves that it knows the password.

    Create a user, and log in.
    The broker's nonce continues the client's, the iterations are those of the user, and the signature is right.
    """
    return _logged_in(bench, SHA_256)


@chapter.check("LOGIN-021", "KIP-84; RFC 5802", uses=SCRAM_USES, needs=OWN_USERS)
def scram_512(bench: Bench) -> Any:
    """SCRAM-SHA-512 logs in, and the broker proves that it knows the password.

    Create a user, and log in.
    The broker's nonce continues the client's, the iterations are those of the user, and the signature is right.
    """
    return _logged_in(bench, SHA_512)


@chapter.check("LOGIN-022", "KIP-43; RFC 5802", uses={**SCRAM_USES, "SaslHandshake": 0}, needs=OWN_USERS)
def scram_without_headers(bench: Bench) -> Any:
    """SCRAM logs in after SaslHandshake 0, with tokens in frames without headers.

    Create a user, send SaslHandshake 0, and both tokens of SCRAM-SHA-256, then ApiVersions.
    """
    user = new_user(bench)
    connection = bench.connect(logs_in=False)
    _handshake(connection, user.mechanism, 0)
    exchange = start(user.mechanism, user.name, user.password)
    last = _bare_token(connection, exchange.send(_bare_token(connection, next(exchange))))
    return {
        "last": last[:2].decode(errors="replace"),
        "then": error_name(connection.ask(request("ApiVersions", 0), 0).error_code),
    }


@chapter.check("LOGIN-023", "KIP-152; ScramSaslServer", uses=SCRAM_USES, needs=OWN_USERS)
def scram_wrong_password(bench: Bench) -> Any:
    """A wrong password of SCRAM is refused, and the connection is closed.

    Create a user, and log in with another password.
    The error is SASL_AUTHENTICATION_FAILED, and neither token proves that the broker knows the password.
    """
    user = new_user(bench)
    connection = _begun(bench, user.mechanism)
    body = _log_in(connection, user._replace(password="wrong"))
    return {
        "error": error_name(body.error_code),
        "signature": bytes(body.auth_bytes).startswith(b"v="),
        "closed": connection.is_closed(),
    }


@chapter.check(
    "LOGIN-024",
    "KIP-152; ScramSaslServer",
    uses=SCRAM_USES,
    needs=OWN_USERS,
    allowed=(
        Allowed(
            path="at the name",
            values=(False,),
            reason="an unknown user fails at the proof, so that nobody learns which users exist",
        ),
    ),
)
def scram_unknown_user(bench: Bench) -> Any:
    """An unknown user of SCRAM is refused, and the connection is closed.

    Log in with SCRAM-SHA-256 and a user that does not exist.
    The error is SASL_AUTHENTICATION_FAILED: in response to the name, or to the proof.
    """
    connection = _begun(bench, SHA_256)
    exchange = start(SHA_256, bench.name("nobody"), "password")
    body = _token(connection, next(exchange))
    is_early = bool(body.error_code)
    if not is_early:
        body = _token(connection, exchange.send(bytes(body.auth_bytes)))
    return {"error": error_name(body.error_code), "at the name": is_early, "closed": connection.is_closed()}


@chapter.check("LOGIN-025", "RFC 5802; ScramMessages", uses=SCRAM_USES, needs=OWN_USERS)
def scram_malformed(bench: Bench) -> Any:
    """First messages that are not those of SCRAM are refused.

    Send an empty token, one of PLAIN, one without a nonce, and one that demands channel binding.
    The error is SASL_AUTHENTICATION_FAILED.
    """
    name = new_user(bench).name
    wrong = ("", "\0a\0b", f"n,,n={name}", f"p=tls-unique,,n={name},r={NONCE}")
    return {"outcomes": [_outcome(_begun(bench, SHA_256), each.encode()) for each in wrong]}


@chapter.check("LOGIN-026", "RFC 5802; ScramSaslServer", uses=SCRAM_USES, needs=OWN_USERS)
def scram_other_nonce(bench: Bench) -> Any:
    """A last message with another nonce or without a proof is refused.

    Create a user, and log in with a changed nonce, then with the proof cut off.
    The error is SASL_AUTHENTICATION_FAILED.
    """
    user = new_user(bench)
    changes: list[Callable[[bytes], bytes]] = [
        lambda data: data.replace(b"r=", b"r=A", 1),
        lambda data: data.partition(b",p=")[0],
    ]
    bodies = [_log_in(_begun(bench, user.mechanism), user, change) for change in changes]
    return {"errors": [error_name(each.error_code) for each in bodies]}


@chapter.check("LOGIN-027", "RFC 5802; ScramSaslServer", uses=SCRAM_USES, needs=OWN_USERS)
def scram_authorization_id(bench: Bench) -> Any:
    """SCRAM refuses another authorization id than the user.

    Create a user, and send a first message with the authorization id of somebody else.
    The error is SASL_AUTHENTICATION_FAILED.
    """
    name = new_user(bench).name
    first = f"n,a={bench.name('other')},n={name},r={NONCE}".encode()
    return _outcome(_begun(bench, SHA_256), first)


@chapter.check("LOGIN-028", "KIP-84; RFC 5802", uses=SCRAM_USES, needs=OWN_USERS)
def scram_nonces(bench: Bench) -> Any:
    """The broker's nonce is another one in each login, and salt and iterations are the same.

    Create a user, and begin two logins with the same nonce.
    """
    user = new_user(bench)
    found = []
    for _ in range(2):
        body = _token(_begun(bench, user.mechanism), f"n,,n={user.name},r={NONCE}".encode())
        found.append(parse(bytes(body.auth_bytes)))
    return {
        "continued": [each["r"].startswith(NONCE) and each["r"] != NONCE for each in found],
        "other nonce": found[0]["r"] != found[1]["r"],
        "same salt": found[0]["s"] == found[1]["s"],
    }


@chapter.check("LOGIN-029", "KIP-84", uses=SCRAM_USES, needs=OWN_USERS)
def other_mechanism(bench: Bench) -> Any:
    """A user of one mechanism cannot log in with the other.

    Create a user of SCRAM-SHA-256, and log in with SCRAM-SHA-512.
    """
    user = new_user(bench)
    body = _log_in(_begun(bench, SHA_512), user._replace(mechanism=SHA_512))
    return {"error": error_name(body.error_code)}


# Users of SCRAM


def _described(bench: Bench, *names: str) -> Any:
    body = bench.ask("DescribeUserScramCredentials", users=[{"name": name} for name in names])
    return sorted(
        [
            each.user.removeprefix(bench.name("")),
            error_name(each.error_code),
            sorted([info.mechanism, info.iterations] for info in each.credential_infos),
        ]
        for each in body.results
    )


@chapter.check("USER-001", "KIP-554", uses=USERS, needs=OWN_USERS)
def described(bench: Bench) -> Any:
    """A user is described with its mechanisms and iterations, and without anything else.

    Create a user with 4096 iterations of SCRAM-SHA-256, then 8192 of SCRAM-SHA-512, and describe it.
    """
    user = User(bench.name("user"), "password", SHA_256)
    both = [upsertion(user), upsertion(user._replace(mechanism=SHA_512), iterations=2 * ITERATIONS)]
    errors = [alter_users(bench, upsertions=[each]) for each in both]
    expected = [["user", "NONE", [[1, ITERATIONS], [2, 2 * ITERATIONS]]]]
    return {"errors": errors, "users": bench.settled(lambda: _described(bench, user.name), expected)}


@chapter.check("USER-002", "KIP-554", uses=USERS, needs=OWN_USERS)
def changed_password(bench: Bench) -> Any:
    """A changed password replaces the former one.

    Create a user, set another password, and log in with both.
    """
    former = new_user(bench)
    user = former._replace(password="another password")
    error = alter_users(bench, upsertions=[upsertion(user)])
    new = bench.settled(lambda: _can_log_in(bench, user), True)
    return {"error": error, "new": new, "former": _can_log_in(bench, former)}


@chapter.check("USER-003", "KIP-554", uses=USERS, needs=OWN_USERS)
def deleted(bench: Bench) -> Any:
    """A deleted user does not exist, and cannot log in any more; an earlier login stays valid.

    Create a user, log in, delete the user, describe it, log in again, and use the first connection.
    """
    user = new_user(bench)
    before = bench.connect(user=user)
    errors = alter_users(bench, deletions=[{"name": user.name, "mechanism": MECHANISMS[user.mechanism]}])
    described = bench.settled(lambda: _described(bench, user.name), [["user", "RESOURCE_NOT_FOUND", []]])
    return {
        "errors": errors,
        "users": described,
        "logs in": bench.settled(lambda: _can_log_in(bench, user), False),
        "before": error_name(before.ask(request("ApiVersions", 0), 0).error_code),
    }


@chapter.check("USER-004", "KIP-554; ScramControlManager", uses=USERS, needs=OWN_USERS)
def wrong_users(bench: Bench) -> Any:
    """Users that make no sense are refused.

    In a request each: 4095 iterations, 16385 iterations, an unknown mechanism, an empty name, and deletions of an
    unknown user and of an unknown mechanism.
    The errors are those of the release.
    """
    user = User(bench.name("user"), "password", SHA_256)
    unknown = {"name": bench.name("nobody"), "mechanism": 1}
    wrong = (
        upsertion(user, iterations=ITERATIONS - 1),
        upsertion(user, iterations=4 * ITERATIONS + 1),
        upsertion(user, mechanism=99),
        upsertion(user, name=""),
    )
    errors = [alter_users(bench, upsertions=[each]) for each in wrong]
    errors += [alter_users(bench, deletions=[each]) for each in (unknown, {**unknown, "mechanism": 99})]
    return {"errors": errors}


@chapter.check("USER-005", "KIP-554; ScramControlManager", uses=USERS, needs=OWN_USERS)
def duplicates(bench: Bench) -> Any:
    """A user twice in a request is refused, and the others are altered.

    In one request, create a user, and another one with both mechanisms. In a second one, delete the first twice.
    The errors of both that are named twice are DUPLICATE_RESOURCE.
    """
    one, two = (User(bench.name(each), "password", SHA_256) for each in ("one", "two"))
    new = [upsertion(one), upsertion(two), upsertion(two._replace(mechanism=SHA_512))]
    errors = [alter_users(bench, upsertions=new)]
    bench.settled(lambda: _described(bench, one.name), [["one", "NONE", [[1, ITERATIONS]]]])
    errors.append(alter_users(bench, deletions=2 * [{"name": one.name, "mechanism": 1}]))
    return {"errors": errors, "users": _described(bench, one.name, two.name)}


@chapter.check("USER-006", "KIP-554", uses=USERS, needs=OWN_USERS)
def described_twice(bench: Bench) -> Any:
    """A user that is named twice in a description has an error, and an unknown one another.

    Describe a user twice, and one that does not exist, in one request.
    """
    user = new_user(bench)
    return {"users": _described(bench, user.name, user.name, bench.name("nobody"))}
