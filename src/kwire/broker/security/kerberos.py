"""GSSAPI: the client shows a Kerberos ticket for this broker, and the broker proves that it can read it.

    client     AP-REQ, with the ticket
    broker     AP-REP                          client    an empty message
    broker     offer: 1 (no security layer) and three bytes, wrapped
    client     choice: 1, three bytes and an authorization id, wrapped

The user is the short name of the ticket's principal; the authorization id is not used, as in Kafka. Whatever fails (an
expired ticket, one for another service, a replay, anything else) has the same response; the log has the reason. The
keys are read from the keytab for each login, so that it can be renewed; no KDC is asked.
Source: RFC 4752; SaslServerAuthenticator, com.sun.security.sasl.gsskerb.GssKrb5Server of Java 17.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Any

from kwire.broker.configs.settings import Settings
from kwire.broker.security.errors import AuthenticationFailed
from kwire.broker.security.kerberos_names import NoLocalName, local_name, parse_rules
from kwire.errors import OptionError
from kwire.extras import needing

__all__ = ["GssapiServer", "KerberosKey"]

log = logging.getLogger("kwire.broker")

NO_SECURITY_LAYER = 1
OFFER = bytes((NO_SECURITY_LAYER, 0, 0, 0))


class KerberosKey:
    """The broker's key in a keytab, and the rules for short names. Raises OptionError if it cannot be read."""

    def __init__(self, settings: Settings) -> None:
        keytab, principal = settings.kerberos_keytab.removeprefix("FILE:"), settings.kerberos_principal
        if not keytab or not principal:
            raise OptionError(
                "sasl.enabled.mechanisms GSSAPI requires kerberos_keytab and kerberos_principal, or keyTab and "
                "principal of a Krb5LoginModule in listener.name.NAME.gssapi.sasl.jaas.config"
            )
        service = settings.sasl_kerberos_service_name
        if service and service != principal.partition("@")[0].partition("/")[0]:
            raise OptionError(
                f"broker config sasl.kerberos.service.name is {service!r}, but the principal is {principal!r}: no "
                "client could log in"
            )
        self.rules = parse_rules(settings.sasl_kerberos_principal_to_local_rules)
        with needing("sasl.enabled.mechanisms GSSAPI"):
            import gssapi
        self.library: Any = gssapi
        mech = gssapi.MechType.kerberos
        try:
            name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            self.credentials = gssapi.Credentials(
                name=name, mechs=[mech], usage="accept", store={"keytab": f"FILE:{keytab}"}
            )
            self.default_realm = realm_of(gssapi)
        except gssapi.exceptions.GSSError as error:
            raise OptionError(
                f"kerberos_keytab {keytab} with principal {principal!r} cannot be used: {error}"
            ) from None


def realm_of(gssapi: Any) -> str:
    """Return the default realm of krb5.conf, "" without one."""
    try:
        name = gssapi.Name("broker", gssapi.NameType.kerberos_principal).canonicalize(gssapi.MechType.kerberos)
    except gssapi.exceptions.GSSError:
        return ""
    return str(name).rpartition("@")[2]


class Stage(Enum):
    """The client's next message."""

    CONTEXT = "context"
    EMPTY = "empty"
    CHOICE = "choice"
    NONE = "none"


class GssapiServer:
    """One authentication."""

    is_refusal = False

    def __init__(self, key: KerberosKey) -> None:
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self.is_token_authenticated = False
        self._key = key
        self._context = key.library.SecurityContext(creds=key.credentials, usage="accept")
        self._context.__DEFER_STEP_ERRORS__ = False  # a token that reports an error must not look like a success
        self._stage = Stage.CONTEXT

    def step(self, message: bytes) -> bytes:
        """Process a message and return the response; sets user after the last. Raises AuthenticationFailed."""
        stage, self._stage = self._stage, Stage.NONE
        try:
            if stage == Stage.CONTEXT:
                return self._take_ticket(message)
            if stage == Stage.EMPTY and not message:
                return self._offer()
            if stage == Stage.CHOICE:
                return self._take_choice(message)
        except (self._key.library.exceptions.GSSError, NoLocalName) as error:
            log.info("a login with Kerberos failed: %s", error)
            raise AuthenticationFailed() from None
        raise AuthenticationFailed()

    def _take_ticket(self, message: bytes) -> bytes:
        response: bytes | None = self._context.step(message)
        if not self._context.complete:
            if not response:
                raise AuthenticationFailed()
            self._stage = Stage.CONTEXT
            return response
        if not response:  # the client did not ask for mutual authentication
            return self._offer()
        self._stage = Stage.EMPTY
        return response

    def _offer(self) -> bytes:
        self._stage = Stage.CHOICE
        offer: bytes = self._context.wrap(OFFER, False).message
        return offer

    def _take_choice(self, message: bytes) -> bytes:
        choice = self._context.unwrap(message).message
        if len(choice) < len(OFFER) or choice[0] != NO_SECURITY_LAYER:
            raise AuthenticationFailed()
        principal = str(self._context.initiator_name)
        self.user = local_name(principal, self._key.rules, self._key.default_realm)
        return b""
