"""The client side of GSSAPI: Kerberos tickets of a keytab or of a ticket cache, and the tokens made from them.

    config                                               tickets
    Krb5LoginModule ... useKeyTab=true keyTab=... principal=...      of the keytab, in this process's memory
    Krb5LoginModule ... useTicketCache=true [ticketCache=...]        of kinit, in its cache
    without sasl.jaas.config                             as with useTicketCache; KRB5_CLIENT_KTNAME works too

Each connection uses tickets that are valid when it is opened; a keytab's tickets are renewed then. Calls that may ask a
KDC run in a thread of their own, because the Kerberos library has no timeout.
Source: RFC 4752, RFC 4121; com.sun.security.auth.module.Krb5LoginModule, com.sun.security.sasl.gsskerb.GssKrb5Client of
Java 17; org.apache.kafka.common.security.kerberos.KerberosLogin 4.4.0.
"""

from __future__ import annotations

import hashlib
import logging
import queue
import threading
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, TypeVar

from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.extras import needing

__all__ = ["KerberosConfigs", "KerberosLogin", "choose_login"]

LOGGER = logging.getLogger("kwire.client")
LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SASL_AUTHENTICATION_FAILED = 58
NO_SECURITY_LAYER = 1
LAYERS = {2: "integrity", 4: "confidentiality"}
KDC_UNREACHABLE = 0x96C73A9C  # KRB5_KDC_UNREACH, unsigned
FLAGS = frozenset({"doNotPrompt", "isInitiator", "refreshKrb5Config", "renewTGT", "storeKey", "debug", "useFirstPass"})
"""Options that say true or false and change nothing here, at the values of HARMLESS."""
HARMLESS = {
    "isInitiator": ("true",),
    "useFirstPass": ("false",),
}

T = TypeVar("T")


class Wrapped(Protocol):
    """A message of a context, wrapped or not."""

    @property
    def message(self) -> bytes: ...


class Context(Protocol):
    """The used part of gssapi.SecurityContext: the package is an extra, and unknown to type checkers without it."""

    complete: bool
    actual_flags: Collection[object]

    def step(self, token: bytes | None = None) -> bytes | None: ...
    def wrap(self, message: bytes, encrypt: bool) -> Wrapped: ...
    def unwrap(self, message: bytes) -> Wrapped: ...


class GssError(Protocol):
    """The used part of gssapi.exceptions.GSSError."""

    maj_code: int
    min_code: int

    def get_all_statuses(self, code: int, is_maj: bool) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosConfigs:
    """Client configs of GSSAPI, besides sasl.jaas.config. keytab, principal: librdkafka's."""

    service_name: str | None = None
    keytab: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """Where a client's tickets come from. service: of the brokers. ticket_cache: None for the default one."""

    service: str
    keytab: str | None = None
    principal: str | None = None
    ticket_cache: str | None = None

    def exchange(self, host: str, timeout_s: float) -> Generator[bytes, bytes, None]:
        """Authenticate to the broker of a host; yields the tokens to send.

        Raises OptionError without a valid ticket, ConnectionFailed if no KDC responds in time, BrokerError if the
        broker cannot prove who it is.
        """
        with needing("config 'sasl.mechanism' GSSAPI"):
            import gssapi
        service = f"{self.service}@{host}"

        def begin() -> tuple[Context, bytes]:
            name = gssapi.Name(service, gssapi.NameType.hostbased_service)
            flags = [gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity]
            context = gssapi.SecurityContext(
                name=name, creds=self._credentials(gssapi), mech=gssapi.MechType.kerberos, flags=flags, usage="initiate"
            )
            context.__DEFER_STEP_ERRORS__ = False
            return context, context.step() or b""

        try:
            context, token = within(timeout_s, begin, f"no Kerberos KDC responded about {service}")
        except gssapi.exceptions.GSSError as error:
            if getattr(error, "min_code", 0) & 0xFFFFFFFF == KDC_UNREACHABLE:
                raise ConnectionFailed(f"no Kerberos KDC can be reached: {text_of(error)}", service) from None
            raise OptionError(
                f"config 'sasl.mechanism' GSSAPI: no ticket for {service}: {self._advice(error)}"
            ) from None
        try:
            while not context.complete:
                token = context.step((yield token)) or b""
            if gssapi.RequirementFlag.mutual_authentication not in context.actual_flags:
                raise BrokerError(f"the broker did not prove that it is {service}", SASL_AUTHENTICATION_FAILED)
            offer = context.unwrap((yield token)).message
            if len(offer) != 4 or not offer[0] & NO_SECURITY_LAYER:
                layers = ", ".join(name for bit, name in LAYERS.items() if offer[:1] and offer[0] & bit)
                raise BrokerError(
                    f"the broker requires a security layer of SASL ({layers or 'unknown'}), which Kafka's protocol "
                    "does not have",
                    SASL_AUTHENTICATION_FAILED,
                )
            # Without an authorization id the broker takes the principal of the ticket.
            yield context.wrap(bytes((NO_SECURITY_LAYER, 0, 0, 0)), False).message
        except gssapi.exceptions.GSSError as error:
            raise BrokerError(
                f"the broker cannot prove that it is {service}: {text_of(error)}", SASL_AUTHENTICATION_FAILED
            ) from None

    def _credentials(self, gssapi: ModuleType) -> object:
        name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal) if self.principal else None
        store: dict[str, str] = {}
        if self.keytab is not None:
            place = hashlib.sha256(f"{self.principal}\0{self.keytab}".encode()).hexdigest()[:16]
            store = {"client_keytab": self.keytab, "ccache": f"MEMORY:kwire-{place}"}
        elif self.ticket_cache is not None:
            store = {"ccache": self.ticket_cache}
        mechs = [gssapi.MechType.kerberos]
        return gssapi.Credentials(name=name, usage="initiate", mechs=mechs, **({"store": store} if store else {}))

    def _advice(self, error: GssError) -> str:
        remedy = f"keytab {self.keytab}, principal {self.principal}" if self.keytab else "kinit makes one"
        return f"{text_of(error)}; {remedy}, and sasl.kerberos.service.name is {self.service!r}"


def text_of(error: GssError) -> str:
    """Return the reason of a GSSError: the mechanism's, which says more than the general one."""
    parts = error.get_all_statuses(error.min_code, False) if error.min_code else []
    parts = [each for each in parts if each and each != "Success"] or error.get_all_statuses(error.maj_code, True)
    return "; ".join(parts)[:300]


def within(timeout_s: float, call: Callable[[], T], what: str) -> T:
    """Return the result of a call in a thread. Raises ConnectionFailed after timeout_s; the thread ends by itself."""
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, name="kwire Kerberos", daemon=True).start()
    try:
        result, problem = done.get(timeout=timeout_s)
    except queue.Empty:
        raise ConnectionFailed(f"{what} within {timeout_s:g} s", "Kerberos") from None
    if problem is not None:
        raise problem
    return result  # type: ignore[return-value]  # set if there is no problem


def choose_login(configs: KerberosConfigs, module: str, jaas: Mapping[str, str]) -> KerberosLogin:
    """Return the login of a client. module, jaas: the login module and its options, "" without sasl.jaas.config.

    Raises OptionError for options that are not supported, and without a service name.
    """
    if module and module != LOGIN_MODULE:
        raise OptionError(f"config 'sasl.jaas.config': GSSAPI requires {LOGIN_MODULE}, got {module[:200]!r}")
    flags = {name: flag_of(jaas, name) for name in ("useKeyTab", "useTicketCache")}
    known = FLAGS | {"keyTab", "principal", "serviceName", "ticketCache", *flags}
    idle = []
    for name, value in jaas.items():
        if name not in known or value.lower() not in HARMLESS.get(name, (value.lower(),)):
            raise OptionError(
                f"config 'sasl.jaas.config': option {name}={value[:50]!r} of {LOGIN_MODULE} is not supported"
            )
        if name in ("debug", "refreshKrb5Config", "renewTGT") and value.lower() == "true":
            idle.append(name)
    if idle:
        LOGGER.warning("config 'sasl.jaas.config': options without effect: %s", ", ".join(idle))
    if all(flags.values()):
        raise OptionError("config 'sasl.jaas.config': useKeyTab and useTicketCache are mutually exclusive")
    if module and not any(flags.values()):
        raise OptionError(
            "config 'sasl.jaas.config': expected useKeyTab=true or useTicketCache=true: there is nobody to ask for a "
            "password"
        )
    service = one_of("sasl.kerberos.service.name", configs.service_name, "serviceName", jaas)
    if not service:
        raise OptionError(
            "config 'sasl.kerberos.service.name' is required with sasl.mechanism GSSAPI (Java's default, other "
            "mechanisms have to be set): the first part of the brokers' principal, usually kafka"
        )
    principal = one_of("sasl.kerberos.principal", configs.principal, "principal", jaas)
    if flags["useKeyTab"] or (configs.keytab and not flags["useTicketCache"]):
        keytab = one_of("sasl.kerberos.keytab", configs.keytab, "keyTab", jaas)
        if not keytab or not principal:
            raise OptionError("config 'sasl.jaas.config': useKeyTab=true requires keyTab and principal")
        return KerberosLogin(service=service, keytab=keytab.removeprefix("FILE:"), principal=principal)
    if configs.keytab or "keyTab" in jaas:
        raise OptionError("config 'sasl.jaas.config': a keytab requires useKeyTab=true")
    if "ticketCache" in jaas and not flags["useTicketCache"]:
        raise OptionError("config 'sasl.jaas.config': ticketCache requires useTicketCache=true")
    return KerberosLogin(service=service, principal=principal, ticket_cache=jaas.get("ticketCache"))


def flag_of(jaas: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false. Raises OptionError."""
    value = jaas.get(name, "false").lower()
    if value not in ("true", "false"):
        raise OptionError(f"config 'sasl.jaas.config': option {name}: expected true or false")
    return value == "true"


def one_of(config: str, value: str | None, option: str, jaas: Mapping[str, str]) -> str | None:
    """Return the value of a config or of an option of the login module. Raises OptionError if they differ."""
    other = jaas.get(option)
    if value and other and value != other:
        raise OptionError(f"config '{config}' is {value!r}, but {option} in sasl.jaas.config is {other!r}")
    return value or other
