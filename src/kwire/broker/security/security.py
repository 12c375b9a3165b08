"""The security of a node: authentication and authorization.

A connection asks its `session` before it reads more of a request than the API key. A listener without SASL allows every
request, and the principal is that of the client certificate, if any. Handlers call `Node.may`.
"""

from __future__ import annotations

import logging
import secrets
from functools import partial
from typing import TYPE_CHECKING

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import Peer, RequestContext
from kwire.broker.security.acls import Acls
from kwire.broker.security.authorizer import Authorizer
from kwire.broker.security.credentials import Credentials
from kwire.broker.security.delegation_tokens import DelegationTokens
from kwire.broker.security.kerberos import GssapiServer, KerberosKey
from kwire.broker.security.oauthbearer import OauthBearerServer
from kwire.broker.security.plain import PlainServer
from kwire.broker.security.quotas import Quotas
from kwire.broker.security.scram import ScramServer
from kwire.broker.security.sessions import SaslServer, SaslSession
from kwire.broker.tokens import UNSECURED
from kwire.errors import OptionError
from kwire.internal_topics.enums import ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from kwire.broker.clock import Clock
    from kwire.broker.configs.settings import Settings
    from kwire.broker.metadata_log import Commit
    from kwire.internal_topics.cluster_state import ClusterState

__all__ = ["Security"]

logger = logging.getLogger(__name__)

PLAIN, OAUTHBEARER, GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
SCRAM = {mechanism.label: mechanism for mechanism in ScramMechanism}
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS = frozenset({AUTHORIZER, "kafka.security.authorizer.AclAuthorizer"})
PEPPER_BYTES = 32


class Security:
    """Authentication, authorization, tokens and quotas of a node. Raises OptionError for invalid settings."""

    def __init__(self, cluster: ClusterState, commit: Commit, clock: Clock, settings: Settings) -> None:
        self._settings, self._clock = settings, clock
        names = [name.strip() for name in settings.sasl_enabled_mechanisms.split(",") if name.strip()]
        known = [PLAIN, *SCRAM, OAUTHBEARER, GSSAPI]
        if not names:
            raise OptionError(
                "broker config sasl.enabled.mechanisms: it is empty, so nobody could log in; name at least one of "
                f"{', '.join(known)}, or remove it for the default"
            )
        if unknown := [name for name in names if name not in known]:
            raise OptionError(
                f"sasl_enabled_mechanisms: {unknown[0]!r} is not supported; available: {', '.join(known)}"
            )
        self.acls = Acls(cluster, commit)
        self.quotas = Quotas(cluster, commit)
        scram = [SCRAM[name] for name in names if name in SCRAM]
        self.credentials = Credentials(cluster, commit, settings.users, scram)
        self.tokens = DelegationTokens(cluster, commit, clock, settings)
        self.mechanisms = self._servers(names)
        self.authorizer = self._make_authorizer()

    def may(self, context: RequestContext, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return whether the sender of a request may perform an operation on a resource."""
        peer = context.peer
        if self.authorizer is None or self.authorizer.may(peer.principal, peer.host, operation, kind, name):
            return True
        logger.debug("%s from %s may not %s %s %s", peer.principal, peer.host, operation.name, kind.name, name)
        return False

    def may_on_any(self, context: RequestContext, operation: Operation, kind: ResourceType) -> bool:
        """Return whether the sender of a request may perform an operation on any resource of a type."""
        peer = context.peer
        return self.authorizer is None or self.authorizer.may_on_any(peer.principal, peer.host, operation, kind)

    def session(self, peer: Peer) -> SaslSession | None:
        """Return the SASL session of a connection; None for a listener without SASL."""
        if not peer.security_protocol.startswith("SASL"):
            return None
        if peer.authentication is None:
            lifetime_ms = self._settings.connections_max_reauth_ms
            peer.authentication = SaslSession(peer, self._clock, self.mechanisms, lifetime_ms)
        return peer.authentication

    def _servers(self, names: list[str]) -> dict[str, Callable[[], SaslServer]]:
        credentials, pepper = self.credentials, secrets.token_bytes(PEPPER_BYTES)
        servers: dict[str, Callable[[], SaslServer]] = {}
        if self._settings.kerberos_keytab and GSSAPI not in names:
            logger.warning("kerberos_keytab has no effect: sasl.enabled.mechanisms does not contain GSSAPI")
        for name in names:
            if name == PLAIN:
                servers[name] = partial(PlainServer, credentials.password)
            elif name == OAUTHBEARER:
                if self._settings.sasl_oauthbearer_validator is UNSECURED:
                    logger.warning("OAUTHBEARER accepts unsigned tokens, which anybody can create: for tests only")
                servers[name] = partial(OauthBearerServer, self._settings.sasl_oauthbearer_validator, self._clock)
            elif name == GSSAPI:
                servers[name] = partial(GssapiServer, KerberosKey(self._settings))
            else:
                mechanism = SCRAM[name]
                servers[name] = partial(
                    ScramServer,
                    mechanism,
                    partial(credentials.scram, mechanism=mechanism),
                    pepper,
                    find_token=partial(self.tokens.login, mechanism=mechanism),
                )
        return servers

    def _make_authorizer(self) -> Authorizer | None:
        settings = self._settings
        name = settings.authorizer_class_name
        if name and name not in AUTHORIZERS:
            raise OptionError(f"authorizer_class_name {name!r} is not supported; use {AUTHORIZER}")
        if not name and not settings.acls:
            if settings.super_users:
                logger.warning("super.users has no effect, every client may do everything: set acls=true")
            return None
        principals = [text.strip() for text in settings.super_users.split(";") if text.strip()]
        if wrong := [text for text in principals if ":" not in text]:
            raise OptionError(f"super_users: {wrong[0]!r} is not a principal; use 'User:{wrong[0]}'")
        return Authorizer(self.acls, principals, default=settings.allow_everyone_if_no_acl_found)
