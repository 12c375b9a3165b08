"""Delegation tokens: credentials that users create for themselves or others, for a limited time (KIP-48).

Tokens need delegation.token.secret.key. The password of a token is its HMAC in base64: HMAC-SHA512 of the token id
under that key. So the DelegationTokenRecord in the metadata log holds no password, only the id, the owner, the renewers
and the timestamps. Clients log in by SCRAM with the extension tokenauth=true and the token id as user name.
Source: org.apache.kafka.controller.DelegationTokenControlManager, kafka.server.DelegationTokenManager 3.9.1.
"""

from __future__ import annotations

import base64
import functools
import hmac
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from kwire.broker.clock import Clock
from kwire.broker.configs.settings import Settings
from kwire.broker.security.scram import new_credential
from kwire.identifiers import new_uuid, render_uuid
from kwire.internal_topics.cluster_state import ClusterState, DelegationToken, ScramCredential
from kwire.internal_topics.enums import ScramMechanism
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.messages import DelegationTokenRecord, RemoveDelegationTokenRecord
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.metadata_log import Commit

__all__ = ["DelegationTokens"]

USER_TYPE = "User"
ALGORITHM = "sha512"
CREDENTIALS = 1000
"""Maximum number of cached token credentials: making one takes a few milliseconds."""


class DelegationTokens:
    """The tokens of a cluster."""

    def __init__(self, cluster: ClusterState, commit: Commit, clock: Clock, settings: Settings) -> None:
        self._commit, self._clock, self._settings = commit, clock, settings
        self._key = settings.delegation_token_secret_key.text.encode()
        self._cluster, self._tokens = cluster, cluster.tokens
        self._credential = functools.lru_cache(CREDENTIALS)(self._make_credential)

    def __iter__(self) -> Iterator[DelegationToken]:
        return iter(list(self._tokens.values()))

    @property
    def is_enabled(self) -> bool:
        """Whether a secret key is configured."""
        return bool(self._key)

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC of a token."""
        return hmac.digest(self._key, token_id.encode(), ALGORITHM)

    def login(self, token_id: str, mechanism: ScramMechanism) -> tuple[DelegationToken, ScramCredential] | None:
        """Return a token and its credential; None for an unknown or expired token."""
        token = self._tokens.get(token_id)
        if token is None or not self._key or token.has_expired(self._clock.now_ms()):
            return None
        return token, self._credential(token_id, mechanism)

    def _make_credential(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        return new_credential(mechanism, base64.b64encode(self.hmac_of(token_id)).decode())

    def create(
        self, owner: str, requester: str, renewers: Iterable[tuple[str, str]], max_lifetime_ms: int
    ) -> DelegationToken:
        """Create a token. max_lifetime_ms: 0 or less for the broker's default. Raises BrokerError."""
        self._check_enabled()
        principals = []
        for kind, name in renewers:
            if kind != USER_TYPE:
                raise refusal(ErrorCode.INVALID_PRINCIPAL_TYPE, f"Unsupported principal type {kind}")
            principals.append(f"{kind}:{name}")
        now_ms = self._clock.now_ms()
        longest_ms = self._settings.delegation_token_max_lifetime_ms
        max_ms = now_ms + (min(longest_ms, max_lifetime_ms) if max_lifetime_ms > 0 else longest_ms)
        expires_at_ms = min(max_ms, now_ms + self._settings.delegation_token_expiry_time_ms)
        token_id = render_uuid(new_uuid())
        record = DelegationTokenRecord(
            token_id=token_id,
            owner=owner,
            requester=requester,
            renewers=principals,
            issue_timestamp=now_ms,
            max_timestamp=max_ms,
            expiration_timestamp=expires_at_ms,
        )
        self._commit([(record, 0)])
        return self._tokens[token_id]

    def renew(self, token_hmac: bytes, principal: str, period_ms: int) -> int:
        """Extend a token up to its maximum lifetime; return the expiry timestamp.

        period_ms: 0 or less for the broker's default. Raises BrokerError.
        """
        token, now_ms = self._of_hmac(token_hmac), self._clock.now_ms()
        if token.has_expired(now_ms):
            raise refusal(ErrorCode.DELEGATION_TOKEN_EXPIRED, "Delegation Token is expired.")
        check_owner(token, principal)
        longest_ms = self._settings.delegation_token_expiry_time_ms
        period_ms = min(longest_ms, period_ms) if period_ms > 0 else longest_ms
        expires_at_ms = min(token.max_timestamp, now_ms + period_ms)
        self._set_expiry(token, expires_at_ms)
        return expires_at_ms

    def expire(self, token_hmac: bytes, principal: str, period_ms: int) -> int:
        """Expire a token after a period, immediately if negative; return the expiry timestamp. Raises BrokerError."""
        token, now_ms = self._of_hmac(token_hmac), self._clock.now_ms()
        check_owner(token, principal)
        if period_ms < 0:
            self._commit([(RemoveDelegationTokenRecord(token_id=token.token_id), 0)])
            return now_ms
        if token.has_expired(now_ms):
            raise refusal(ErrorCode.DELEGATION_TOKEN_EXPIRED, "Delegation Token is expired.")
        expires_at_ms = min(token.max_timestamp, now_ms + period_ms)
        self._set_expiry(token, expires_at_ms)
        return expires_at_ms

    def _set_expiry(self, token: DelegationToken, expires_at_ms: int) -> None:
        record, version = self._cluster.records["DelegationTokenRecord", token.token_id]
        assert isinstance(record, DelegationTokenRecord)
        self._commit([(msgspec.structs.replace(record, expiration_timestamp=expires_at_ms), version)])

    def remove_expired(self) -> None:
        """Delete expired tokens."""
        now_ms = self._clock.now_ms()
        self._remove(token for token in self if token.has_expired(now_ms))

    def clear(self) -> None:
        """Delete all tokens."""
        self._remove(self)

    def _remove(self, tokens: Iterable[DelegationToken]) -> None:
        records: list[VersionedMessage] = [
            (RemoveDelegationTokenRecord(token_id=token.token_id), 0) for token in tokens
        ]
        if records:
            self._commit(records)

    def _check_enabled(self) -> None:
        if not self.is_enabled:
            raise refusal(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "Delegation Token feature is not enabled.")

    def _of_hmac(self, token_hmac: bytes) -> DelegationToken:
        self._check_enabled()
        for token in self._tokens.values():
            if hmac.compare_digest(self.hmac_of(token.token_id), token_hmac):
                return token
        raise refusal(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "Delegation Token is not found on server.")


def check_owner(token: DelegationToken, principal: str) -> None:
    """Check that a principal owns a token or may renew it. Raises BrokerError."""
    if not token.is_owner_or_renewer(principal):
        what = "Specified Principal is not valid Owner/Renewer."
        raise refusal(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, what)
