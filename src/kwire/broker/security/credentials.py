"""Users: given by the settings with their passwords, or created as SCRAM credentials while the broker runs.

SCRAM credentials are records of the metadata log (UserScramCredentialRecord, RemoveUserScramCredentialRecord) and
override a user of the same name in the settings. PLAIN needs passwords, so it knows the users of the settings only.
Source: org.apache.kafka.controller.ScramControlManager, org.apache.kafka.image.ScramImage; KIP-554.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.broker.configs.secret_values import Users
from kwire.broker.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, keys_of, new_credential
from kwire.errors import BrokerError
from kwire.internal_topics.cluster_state import ClusterState, ScramCredential
from kwire.internal_topics.enums import ScramMechanism
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.messages import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.metadata_log import Commit
    from kwire.messages.alter_user_scram_credentials_request import ScramCredentialDeletion, ScramCredentialUpsertion

__all__ = ["Credentials"]

NUMBERS = {mechanism.label: mechanism for mechanism in ScramMechanism}
TWICE = "A user credential cannot be altered twice in the same request"


class Credentials:
    """All users. users: of the settings. mechanisms: the SCRAM mechanisms for users of the settings."""

    def __init__(
        self, cluster: ClusterState, commit: Commit, users: Users, mechanisms: Sequence[ScramMechanism]
    ) -> None:
        self._commit, self._users = commit, users
        self._stored = cluster.users
        self._given: dict[tuple[str, str], ScramCredential] = {
            (name, mechanism.label): new_credential(mechanism, password)
            for name, password in users.items()
            for mechanism in mechanisms
        }

    def password(self, user: str) -> str | None:
        """Return the password of a user of the settings."""
        return self._users.get(user)

    def scram(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return a user's credential for a mechanism."""
        key = (user, mechanism.label)
        return self._stored.get(key) or self._given.get(key)

    def iterations(self) -> dict[str, dict[int, int]]:
        """Return the iterations by user and mechanism."""
        by_user: dict[str, dict[int, int]] = {}
        known = {**self._given, **self._stored}
        for user, name in sorted(known):
            by_user.setdefault(user, {})[NUMBERS[name]] = known[user, name].iterations
        return by_user

    def alter(
        self, deletions: Sequence[ScramCredentialDeletion], upsertions: Sequence[ScramCredentialUpsertion]
    ) -> dict[str, BrokerError | None]:
        """Apply deletions and upsertions; return the error of each user, None without one. Raises BrokerError."""
        outcome: dict[str, BrokerError | None] = {}
        records: dict[str, VersionedMessage] = {}
        changes = [(each.name, functools.partial(self._deletion, each)) for each in deletions]
        changes += [(each.name, functools.partial(upsertion, each)) for each in upsertions]
        for user, record in changes:
            if outcome.get(user) is not None:
                continue
            try:
                if user in outcome:
                    del records[user]
                    raise refusal(ErrorCode.DUPLICATE_RESOURCE, TWICE)
                records[user] = (record(), 0)
                outcome[user] = None
            except BrokerError as error:
                outcome[user] = error
        if records:
            self._commit(list(records.values()))
        return outcome

    def clear(self) -> None:
        """Delete all credentials that were created while the broker ran."""
        records: list[VersionedMessage] = [
            (RemoveUserScramCredentialRecord(name=user, mechanism=NUMBERS[name]), 0) for user, name in self._stored
        ]
        if records:
            self._commit(records)

    def _deletion(self, change: ScramCredentialDeletion) -> Message:
        mechanism = check(change.name, change.mechanism)
        if (change.name, mechanism.label) not in self._stored:
            raise refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=mechanism)


def check(user: str, number: int) -> ScramMechanism:
    """Return the mechanism of a change. Raises BrokerError for an empty user or an unknown mechanism."""
    if not user:
        raise refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if number not in frozenset(ScramMechanism):
        raise refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return ScramMechanism(number)


def upsertion(change: ScramCredentialUpsertion) -> Message:
    """Return the record that creates or replaces a credential. Raises BrokerError."""
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
