"""Who can log in: users of the settings, with their passwords, and SCRAM credentials made while the broker runs.

The latter are records of the metadata log (UserScramCredentialRecord, RemoveUserScramCredentialRecord) and come before
a user of the same name in the settings; PLAIN needs the password itself, so it knows the settings' users only.
Source: org.apache.kafka.controller.ScramControlManager, org.apache.kafka.image.ScramImage; KIP-554.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kwire.broker.image import MetadataImage
from kwire.broker.secret_values import Users
from kwire.broker.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential, ScramMechanism, keys_of
from kwire.errors import BrokerError
from kwire.messages import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["Credentials"]

Commit = Callable[[Sequence[tuple[Message, int]]], object]
TWICE = "A user credential cannot be altered twice in the same request"


class Credentials:
    """users: of the settings. mechanisms: those of SCRAM that the settings' users can log in with."""

    def __init__(
        self, image: MetadataImage, commit: Commit, users: Users, mechanisms: Sequence[ScramMechanism]
    ) -> None:
        self._commit, self._users = commit, users
        self._given: dict[tuple[str, int], ScramCredential] = {
            (name, mechanism): ScramCredential.of(mechanism, password)
            for name, password in users.items()
            for mechanism in mechanisms
        }
        self._made: dict[tuple[str, int], ScramCredential] = {}
        image.subscribe("UserScramCredentialRecord", self._set)
        image.subscribe("RemoveUserScramCredentialRecord", self._unset)

    def password(self, user: str) -> str | None:
        """Of a user of the settings."""
        return self._users.get(user)

    def scram(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """The user's credential."""
        key = (user, mechanism)
        return self._made.get(key) or self._given.get(key)

    def iterations(self) -> dict[str, dict[int, int]]:
        """Number of iterations by user and mechanism."""
        found: dict[str, dict[int, int]] = {}
        known: dict[tuple[str, int], ScramCredential] = {**self._given, **self._made}
        for (user, mechanism), credential in sorted(known.items(), key=lambda each: each[0]):
            found.setdefault(user, {})[mechanism] = credential.iterations
        return found

    def alter(self, deletions: Sequence[Any], upsertions: Sequence[Any]) -> dict[str, BrokerError | None]:
        """Carry out a request's deletions and upsertions; for each user what was wrong, or None. Raises BrokerError."""
        outcome: dict[str, BrokerError | None] = {}
        records: dict[str, tuple[Message, int]] = {}
        for change, make in [(each, self._deletion) for each in deletions] + [(each, upsertion) for each in upsertions]:
            user = change.name
            if outcome.get(user) is not None:
                continue
            try:
                if user in outcome:
                    del records[user]
                    raise refusal(ErrorCode.DUPLICATE_RESOURCE, TWICE)
                records[user] = (make(change), 0)
                outcome[user] = None
            except BrokerError as error:
                outcome[user] = error
        if records:
            self._commit(list(records.values()))
        return outcome

    def clear(self) -> None:
        """Remove those that were made while the broker ran."""
        records: list[tuple[Message, int]] = [
            (RemoveUserScramCredentialRecord(name=user, mechanism=number), 0) for user, number in self._made
        ]
        if records:
            self._commit(records)

    def _deletion(self, change: Any) -> Message:
        mechanism = check(change.name, change.mechanism)
        if (change.name, mechanism) not in self._made:
            raise refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=mechanism)

    def _set(self, record: Any) -> None:
        self._made[record.name, record.mechanism] = ScramCredential(
            salt=record.salt,
            iterations=record.iterations,
            stored_key=record.stored_key,
            server_key=record.server_key,
        )

    def _unset(self, record: Any) -> None:
        self._made.pop((record.name, record.mechanism), None)


def check(user: str, number: int) -> ScramMechanism:
    """The mechanism. Raises BrokerError."""
    if not user:
        raise refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if number not in frozenset(ScramMechanism):
        raise refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return ScramMechanism(number)


def upsertion(change: Any) -> Message:
    """The record of a credential that is made or replaced. Raises BrokerError."""
    mechanism = check(change.name, change.mechanism)
    if change.iterations < MIN_ITERATIONS:
        raise refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    stored_key, server_key = keys_of(mechanism, change.salted_password)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=mechanism,
        salt=change.salt,
        stored_key=stored_key,
        server_key=server_key,
        iterations=change.iterations,
    )
