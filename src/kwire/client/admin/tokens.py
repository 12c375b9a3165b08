"""Delegation tokens (KIP-48): a user's login for others, for a limited time.

    with Client("broker:9093", **configs) as client:                 # logged in as the owner, not with a token
        created = create_token(client, renewers=["User:scheduler"])
    Client("broker:9093", **{"security.protocol": "SASL_SSL", **created.configs()})      # somewhere else

Who has the HMAC of a token can log in with it, and renew or expire it if he is its owner or a renewer.
Source: org.apache.kafka.clients.admin.Admin (createDelegationToken, ...), ScramLoginModule's tokenauth 4.4.0.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

from kwire.client.client import Client, raise_for
from kwire.errors import OptionError, UnsupportedVersion
from kwire.internal_topics.cluster_values import DelegationToken
from kwire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kwire.messages.describe_delegation_token_response import DescribedDelegationToken

__all__ = ["TokenLogin", "create_token", "describe_tokens", "described", "expire_token", "renew_token"]

CREATE, OWNER_VERSION = 38, 3
OF_THE_BROKER = -1
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogin:
    """A token, and the HMAC to log in with."""

    token: DelegationToken
    hmac: bytes = field(repr=False)

    def configs(self, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
        """Return the client configs of a login with the token, for this client and for Java's."""
        password = base64.b64encode(self.hmac).decode()
        options = f'username="{self.token.token_id}" password="{password}" tokenauth="true"'
        return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{SCRAM_MODULE} required {options};"}


def create_token(
    client: Client, *, renewers: Iterable[str] = (), owner: str | None = None, max_lifetime_ms: int = OF_THE_BROKER
) -> TokenLogin:
    """Create a token. renewers, owner: principals as Type:Name; the owner is by default the client's own.

    max_lifetime_ms: by default the broker's. Raises BrokerError as Kafka refuses it, such as
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED to a client that has logged in with a token.
    """
    if owner is not None and (version := client.connection().version_for(CREATE)) < OWNER_VERSION:
        raise UnsupportedVersion(f"CreateDelegationToken {version} of the broker has no owner: Kafka 3.3 is needed")
    owner_type, owner_name = ("", None) if owner is None else divided(owner)
    cls = CreateDelegationTokenRequest
    pairs = [divided(each) for each in renewers]
    request = cls(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[cls.CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in pairs],
        max_lifetime_ms=max_lifetime_ms,
    )
    response = client.request(request, CreateDelegationTokenResponse)
    raise_for(response.error_code, "CreateDelegationToken")
    requester = f"{response.token_requester_principal_type}:{response.token_requester_principal_name}"
    created = DelegationToken(
        token_id=response.token_id,
        owner=(principal := f"{response.principal_type}:{response.principal_name}"),
        requester=principal if requester == ":" else requester,
        renewers=tuple(f"{kind}:{name}" for kind, name in pairs),
        issue_timestamp=response.issue_timestamp_ms,
        max_timestamp=response.max_timestamp_ms,
        expiration_timestamp=response.expiry_timestamp_ms,
    )
    return TokenLogin(token=created, hmac=bytes(response.hmac))


def describe_tokens(client: Client, owners: Iterable[str] | None = None) -> list[TokenLogin]:
    """Return the tokens that the client may see. owners: principals, by default all. Raises BrokerError."""
    cls = DescribeDelegationTokenRequest
    pairs = None if owners is None else [divided(each) for each in owners]
    named = None if pairs is None else [
        cls.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in pairs
    ]  # fmt: skip
    response = client.request(cls(owners=named), DescribeDelegationTokenResponse)
    raise_for(response.error_code, "DescribeDelegationToken")
    return [
        TokenLogin(token=described(each), hmac=bytes(each.hmac))
        for each in response.tokens
    ]  # fmt: skip


def described(token: DescribedDelegationToken) -> DelegationToken:
    """Return a token of a response. Before version 3 it has no requester, who was the owner then."""
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    return DelegationToken(
        token_id=token.token_id,
        owner=owner,
        requester=owner if requester == ":" else requester,
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=token.expiry_timestamp,
    )


def renew_token(client: Client, hmac: bytes, period_ms: int = OF_THE_BROKER) -> int:
    """Renew a token for a period, by default the broker's; return when it expires, in ms. Raises BrokerError."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    response = client.request(request, RenewDelegationTokenResponse)
    raise_for(response.error_code, "RenewDelegationToken")
    return response.expiry_timestamp_ms


def expire_token(client: Client, hmac: bytes, period_ms: int = -1) -> int:
    """Expire a token after a period, by default at once; return when it expires, in ms. Raises BrokerError."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response = client.request(request, ExpireDelegationTokenResponse)
    raise_for(response.error_code, "ExpireDelegationToken")
    return response.expiry_timestamp_ms


def divided(principal: str) -> tuple[str, str]:
    """Return type and name of a principal. Raises OptionError."""
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise OptionError(f"principal {principal!r}: expected Type:Name, such as User:alice")
    return kind, name
