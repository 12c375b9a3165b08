"""Users of the checks: SCRAM credentials with the prefix of the run, which are deleted at the end."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from typing import Any

from kwire.conformance.broker.bench import Bench, User
from kwire.conformance.broker.requests import error_name
from kwire.errors import BrokerError, ConnectionFailed
from kwire.internal_topics.enums import ScramMechanism
from kwire.protocol.error_codes import ErrorCode

__all__ = ["ITERATIONS", "MECHANISMS", "alter_users", "new_user", "stranger", "upsertion"]

ITERATIONS = 4096
MECHANISMS = {each.label: each for each in ScramMechanism}
GONE = (0, ErrorCode.RESOURCE_NOT_FOUND)


def upsertion(user: User, *, iterations: int = ITERATIONS, **fields: Any) -> dict[str, Any]:
    """Return the part of AlterUserScramCredentials that sets a user's password. fields: to set otherwise."""
    mechanism, salt = MECHANISMS[user.mechanism], secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac(
        mechanism.algorithm, user.password.encode(), salt, min(max(iterations, 1), 8 * ITERATIONS)
    )
    part = {"name": user.name, "mechanism": mechanism, "iterations": iterations}
    return {**part, "salt": salt, "salted_password": salted, **fields}


def alter_users(
    bench: Bench, *, upsertions: Sequence[dict[str, Any]] = (), deletions: Sequence[dict[str, Any]] = ()
) -> list[str]:
    """Send AlterUserScramCredentials. Returns the errors by name of the user. New users are deleted at the end."""
    for each in upsertions:
        _own(bench, each["name"], each["mechanism"])
    fields: dict[str, Any] = {"upsertions": list(upsertions), "deletions": list(deletions)}
    body = bench.ask("AlterUserScramCredentials", at=bench.controller(), **fields)
    return [error_name(each.error_code) for each in sorted(body.results, key=lambda each: each.user)]


def _own(bench: Bench, name: str, mechanism: int) -> None:
    def remove(at: Bench) -> None:
        deletion = {"name": name, "mechanism": mechanism}
        body = at.ask("AlterUserScramCredentials", at=at.controller(), upsertions=[], deletions=[deletion])
        if body.results[0].error_code not in GONE:
            raise BrokerError(name, body.results[0].error_code)

    if name.startswith(bench.session.prefix) and mechanism in MECHANISMS.values():
        bench.own(f"user {name} ({ScramMechanism(mechanism).label})", remove)


def new_user(bench: Bench, suffix: str = "user", mechanism: str = "SCRAM-SHA-256") -> User:
    """Create a user of a check's own, and wait until it can log in. Raises BrokerError, ConnectionFailed."""
    user = User(bench.name(suffix), secrets.token_hex(12), mechanism)
    (error,) = alter_users(bench, upsertions=[upsertion(user)])
    if error != "NONE":
        raise BrokerError(f"AlterUserScramCredentials: {user.name}", ErrorCode[error])
    deadline = time.monotonic() + bench.session.settled_s
    while True:
        try:
            bench.connect(user=user).close()
        except BrokerError as problem:
            if time.monotonic() > deadline:
                raise ConnectionFailed(f"a new user cannot log in: {problem}", user.name) from None
            time.sleep(0.05)
        else:
            return user


def stranger(bench: Bench) -> User:
    """Return the run's user without any rights, who is deleted at the end of the run."""
    session = bench.session
    if session.stranger is None:
        own = Bench(session, "stranger")
        try:
            session.stranger = new_user(own)
        finally:
            own.keep()
            own.close()
    return session.stranger
