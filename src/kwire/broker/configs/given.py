"""Parse broker configs from a call or a file: names with dots or underscores, values as text or typed.

    config                     becomes
    of Settings                its field
    in another unit            the field in milliseconds: log.retention.hours, log.retention.minutes, log.roll.hours
    listener.name.NAME.*       the config without the prefix, for the only listener; refused for one of several, and if
                               Kafka reads the config for the whole broker
    ...MECHANISM.*             the config of a mechanism; refused if other enabled mechanisms have another value
    ...sasl.jaas.config        users, a key of Kerberos; refused without the names of a listener and a mechanism, as
                               Kafka ignores it
    ssl.client.auth            refused for listeners of SASL_SSL, as Kafka ignores it without the name of the listener
    of Kafka, without effect   stored and described; named in a warning unless it has Kafka's default
    protective, not supported  refused (see protection)
    unknown                    refused, with suggestions

The security protocol that the configs ask for is that of the listener, or has to be in `listeners`.

tests/interop/test_broker_protection.py asks Kafka what it ignores.

Source: kafka.server.KafkaConfig, kafka.network.SocketServer, org.apache.kafka.common.network.ListenerName.configPrefix,
ChannelBuilders 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kwire.broker.configs.definitions import ConfigType, Resource, definitions
from kwire.broker.configs.protection import JAAS_CONFIG, asked_of, is_protective, refusal_of, resembles_protective
from kwire.broker.configs.secret_values import Users
from kwire.broker.configs.settings import FIELDS, Settings, parse_value, render
from kwire.broker.network.listeners import CONTROLLER_NAMES, listener_names, parse_listeners
from kwire.broker.security.jaas import Jaas, read_jaas
from kwire.errors import OptionError, did_you_mean

__all__ = ["check_misspelled", "dotted", "is_known", "parse_settings", "unless_given"]

log = logging.getLogger("kwire.broker")

UNITS = {
    "log.retention.minutes": ("log_retention_ms", 60_000),
    "log.retention.hours": ("log_retention_ms", 3_600_000),
    "log.roll.hours": ("log_roll_ms", 3_600_000),
    "log.roll.jitter.hours": ("log_roll_jitter_ms", 3_600_000),
}
"""Configs in other units: field and factor. The shortest unit that is given counts."""
BROKER_ID = "broker.id"
LISTENER = "listener.name."
MECHANISMS = frozenset({"plain", "scram-sha-256", "scram-sha-512", "oauthbearer", "gssapi"})
OF_LISTENERS = ("ssl.", "sasl.", "principal.builder.class", "security.providers")
"""Names, or beginnings of names, of configs that Kafka reads with the prefix of a listener. See also COUNTS."""
REAUTH, ENABLED = "connections.max.reauth.ms", "sasl.enabled.mechanisms"
COUNTS = frozenset({REAUTH, "max.connection.creation.rate", "max.connections", "num.network.threads"})
ONLY_OF_MECHANISMS = (JAAS_CONFIG, "sasl.server.callback.handler.class")
"""Configs that Kafka reads with the prefixes of a listener and a mechanism only."""
OF_MECHANISMS = (*ONLY_OF_MECHANISMS, "sasl.login.", "sasl.oauthbearer.")
"""Names, or beginnings of names, of configs that Kafka reads with the prefix of a mechanism, besides REAUTH."""
CLIENT_AUTH = "ssl.client.auth"
OF_SEVERAL_NODES = frozenset(
    {
        "default.replication.factor",
        "offsets.topic.replication.factor",
        "replica.selector.class",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    }
)
"""Configs in Settings that have no effect on a single node."""
HAVE_EFFECT = frozenset({BROKER_ID, CONTROLLER_NAMES, *UNITS})
"""Configs that are not in Settings and have an effect nevertheless."""
TIMES = ("session.timeout.ms", "heartbeat.interval.ms")
LIMITED_OF_GROUPS = {
    "consumer": TIMES,
    "share": (
        *TIMES,
        "assignment.interval.ms",
        "record.lock.duration.ms",
        "delivery.count.limit",
        "partition.max.record.locks",
    ),
}
"""Configs of groups that have a smallest and a largest value, by kind of group."""
SHARE_ASSIGNORS = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
"""Kafka's only assignor of share groups, by name and by class. Another one would be Java code."""
MAY_BE_SMALL = frozenset({"log.segment.bytes", "metadata.log.segment.bytes"})
"""Configs whose least value is that of Kafka 3.9, checked where they are used: tests need small segments."""


class Login(NamedTuple):
    """A login module. listener: "" for all."""

    listener: str
    name: str
    text: str


def dotted(name: str) -> str:
    """Return Kafka's form of a config's name. Names of listeners may contain underscores."""
    return name if name.startswith(LISTENER) else name.replace("_", ".")


def unless_given(defaults: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the defaults of configs that are not given, whichever way their names are spelled."""
    names = {dotted(name) for name in given}
    return {name: value for name, value in defaults.items() if dotted(name) not in names}


def is_known(name: str) -> bool:
    """Return whether a config is Kafka's or this broker's, or may be meant to protect it. name: with dots."""
    return name in FIELDS or name in definitions(Resource.BROKER) or is_protective(name)


def check_misspelled(name: str) -> None:
    """Raise OptionError if an unknown name may be meant for a config that protects the broker."""
    known = [*FIELDS, *definitions(Resource.BROKER)]
    if resembles_protective(name, known):
        raise OptionError(
            f"unknown broker config {name!r}{did_you_mean(name, known)}, and the broker may be more open without it; "
            "correct the name or remove it"
        )


def parse_settings(given: Mapping[str, object], host: str = "127.0.0.1", port: int = 0, nodes: int = 1) -> Settings:
    """Parse the configs of a broker, or of all nodes of a cluster.

    host, port: of its listener unless `listeners` is given. nodes: of the cluster.

    Raises OptionError for an unknown name, an invalid value, and a config that protects the broker and would be lost.
    """
    typed: dict[str, str] = {}
    for spelling in given:
        if typed.setdefault(dotted(spelling), spelling) != spelling:
            raise OptionError(f"broker config {dotted(spelling)} is given twice; remove {spelling}")
    configs, logins = without_listener_names({dotted(name): value for name, value in given.items()})
    values: dict[str, Any] = {}
    others: dict[str, str] = {}
    for name, value in configs.items():
        field = FIELDS.get(name)
        if field is not None:
            values[field.name] = parse_value(typed.get(name, name), type(field.default), value)
            check_range(name, values[field.name])
        else:
            others[name] = parse_other(name, typed.get(name, name), value)
    jaas = jaas_of(logins)
    if jaas.users:
        values["users"] = Users({**jaas.users, **values.get("users", {})})
    if jaas.keytab:
        add_kerberos(values, jaas)
    convert(values, others)
    idle = [name for name, text in others.items() if name not in HAVE_EFFECT and not is_default(name, text)]
    if nodes == 1:
        idle += [name for name in sorted(OF_SEVERAL_NODES & configs.keys()) if not is_default(name, str(configs[name]))]
    if idle:
        log.warning("configs without an effect on this broker: %s", ", ".join(idle))
    settings = Settings(**values, others=others)
    check_groups(settings)
    asked = asked_of(settings, [*configs, *(JAAS_CONFIG for _ in logins)])
    if "listeners" not in values:
        address = f"[{host}]" if ":" in host else host
        return settings.replace(listeners=f"{asked.protocol}://{address}:{port}")
    protocols = [each.protocol for each in parse_listeners(settings, settings.listeners)]
    for name, needed, has_one in (
        (asked.tls, "SSL or SASL_SSL", any(each.endswith("SSL") for each in protocols)),
        (asked.sasl, "SASL_PLAINTEXT or SASL_SSL", any(each.startswith("SASL") for each in protocols)),
    ):
        if name and not has_one:
            raise OptionError(
                f"broker config {name} requires a listener of protocol {needed}, got listeners={settings.listeners}; "
                f"change listeners or remove {name}"
            )
    if not any(parts_of(name)[0] and parts_of(name)[2] == CLIENT_AUTH for name in typed):
        check_client_auth(settings, protocols)
    return settings


def check_client_auth(settings: Settings, protocols: Sequence[str]) -> None:
    """Raise OptionError for certificates that Kafka would not ask for, or warn if some listeners ask for them."""
    if settings.ssl_client_auth.lower() == "none" or "SASL_SSL" not in protocols:
        return
    what = f"{CLIENT_AUTH}: Kafka ignores it on listeners of SASL_SSL without the name of the listener"
    if "SSL" not in protocols:
        raise OptionError(f"broker config {what}; set {LISTENER}NAME.{CLIENT_AUTH} for the only listener, or remove it")
    log.warning("%s: those here ask for no certificate either", what)


def without_listener_names(configs: Mapping[str, object]) -> tuple[dict[str, object], list[Login]]:
    """Return the configs without the prefix of the only listener, and the login modules.

    Raises OptionError for a config of an unknown listener, and of one of several: it would hold for all.
    """
    listeners, controllers = listener_names(configs)
    values: dict[str, object] = {}
    logins, idle = [], []
    sessions: dict[str, str] = {}
    for name in sorted(configs, key=lambda each: each.startswith(LISTENER)):  # stable; configs of a listener are later
        listener, mechanism, base = parts_of(name)
        if listener.upper() in controllers:
            idle.append(name)
        elif listener and listeners and listener.upper() not in listeners:
            raise OptionError(
                f"broker config {name}: listeners has no {listener.upper()}; correct the name or remove it"
            )
        elif (reason := ignored_by_kafka(name, str(configs[name]))) is not None:
            raise OptionError(f"broker config {name}: Kafka ignores it, {reason}")
        elif base == JAAS_CONFIG:
            logins.append(Login(listener.upper(), name, str(configs[name])))
        elif listener and len(listeners) > 1:
            raise OptionError(f"broker config {name}: not supported for one of several listeners; set {base}")
        elif mechanism and base == REAUTH:
            sessions[mechanism] = name
        else:
            values[base] = configs[name]
    apply_sessions(values, {mechanism: (name, configs[name]) for mechanism, name in sessions.items()})
    if idle:
        log.warning("configs of controllers have no effect on this broker: %s", ", ".join(idle))
    return values, logins


def ignored_by_kafka(name: str, text: str) -> str | None:
    """Return why Kafka would ignore a config, with the remedy; None if it reads it. text: its value."""
    listener, mechanism, base = parts_of(name)
    prefix = name.removesuffix(base)
    if prefix != prefix.lower():
        return f"because it reads names of listeners and mechanisms in lower case; set {prefix.lower()}{base}"
    if base in ONLY_OF_MECHANISMS and not (listener and mechanism) and text.strip():
        return (
            "because it reads it with the names of a listener and a mechanism; set "
            f"listener.name.{listener or 'LISTENER'}.{mechanism or 'MECHANISM'}.{base}"
        )
    if listener and is_of_the_broker(base):
        return f"because {base} holds for all listeners; remove it or set {base}"
    if mechanism and not (base == REAUTH or base.startswith(OF_MECHANISMS)):
        return f"because {base} holds for all mechanisms; remove {mechanism} from the name"
    return None


def parts_of(name: str) -> tuple[str, str, str]:
    """Split a name into listener, mechanism and config. The first two are "" if the name has none."""
    if not name.startswith(LISTENER):
        return "", "", name
    listener, _, base = name.removeprefix(LISTENER).partition(".")
    mechanism, _, rest = base.partition(".")
    return (listener, mechanism.lower(), rest) if mechanism.lower() in MECHANISMS else (listener, "", base)


def apply_sessions(configs: dict[str, object], given: Mapping[str, tuple[str, object]]) -> None:
    """Set connections.max.reauth.ms if that of each enabled mechanism is the same.

    given: names and values by mechanism. Raises OptionError if enabled mechanisms would have different ones, and
    for one that is not enabled.
    """
    enabled = str(configs.get(ENABLED, FIELDS[ENABLED].default)).split(",")
    names = [name.strip().lower() for name in enabled if name.strip()]
    for mechanism, (name, _) in given.items():
        if mechanism not in names:
            raise OptionError(f"broker config {name}: {ENABLED} has no {mechanism.upper()}; add it or remove {name}")
    common = configs.get(REAUTH, FIELDS[REAUTH].default)
    used = [given.get(name, (REAUTH, common)) for name in names]
    times = {parse_value(name, int, value): name for name, value in used}
    if len(times) > 1:
        name = next(name for name, _ in used if name != REAUTH)
        raise OptionError(
            f"broker config {name}: not supported, because enabled mechanisms would have different values "
            f"({', '.join(map(str, times))}); set {REAUTH} for all, or change {ENABLED}"
        )
    if given:
        configs[REAUTH] = next(iter(times))


def is_of_the_broker(name: str) -> bool:
    """Return whether a known config is none that Kafka reads with the prefix of a listener."""
    is_a_config = name in FIELDS or name in definitions(Resource.BROKER)
    return is_a_config and name not in COUNTS and not name.startswith(OF_LISTENERS)


def jaas_of(logins: list[Login]) -> Jaas:
    """Return what login modules say. Raises OptionError, which contains no password, if listeners have others."""
    by_listener: dict[str, Jaas] = {}
    for listener, name, text in logins:
        try:
            jaas = read_jaas(text)
            if not (jaas.users or jaas.keytab):
                log.warning("%s: no user can log in with it", name)
            by_listener[listener] = by_listener.get(listener, Jaas({})).joined(jaas)
        except OptionError as error:
            raise OptionError(f"{name}: {error}") from None
    common = by_listener.pop("", Jaas({}))
    try:
        each = [common.joined(own) for own in by_listener.values()] or [common]
    except OptionError as error:
        raise OptionError(f"{JAAS_CONFIG}: {error}") from None
    if any(one.users != each[0].users for one in each):
        raise OptionError(f"{JAAS_CONFIG} of several listeners: different users are not supported; name the same users")
    if any(one != each[0] for one in each):
        raise OptionError(
            f"{JAAS_CONFIG} of several listeners: different Kerberos keys are not supported; name the same"
        )
    return each[0]


def add_kerberos(values: dict[str, Any], jaas: Jaas) -> None:
    """Set the fields of a broker's Kerberos key. Raises OptionError if a config has another value."""
    for name, value in (
        ("kerberos_keytab", jaas.keytab),
        ("kerberos_principal", jaas.principal),
        ("sasl_kerberos_service_name", jaas.service),
    ):
        if value and values.setdefault(name, value) != value:
            raise OptionError(
                f"{JAAS_CONFIG} and broker config {name.replace('_', '.')} differ: {value!r} and {values[name]!r}"
            )


def check_range(name: str, value: object) -> None:
    """Raise OptionError, with Kafka's message, for a number that Kafka would not start with."""
    definition = definitions(Resource.BROKER).get(name)
    if definition is not None and definition.is_number and name not in MAY_BE_SMALL:
        definition.parse(render(value))


def parse_other(name: str, typed: str, value: object) -> str:
    """Return the text of a config that Settings do not have. Raises OptionError if it is refused or unknown."""
    text = render(value)
    refusal = refusal_of(name, text, FIELDS)
    if refusal is not None:
        raise OptionError(refusal)
    definition = definitions(Resource.BROKER).get(name)
    if definition is None:
        known = [*FIELDS, *definitions(Resource.BROKER)]
        names = known if "." in typed else [each.replace(".", "_") for each in known]
        raise OptionError(f"unknown broker config {typed!r}{did_you_mean(typed, names)}")
    if definition.kind != ConfigType.CLASS:  # the name of a Java class, which kwire cannot load
        definition.parse(text)
    return text


def check_groups(settings: Settings) -> None:
    """Raise OptionError unless the values of KIP-848's and of share groups are between their limits, as Kafka demands.

    Source: GroupCoordinatorConfig, ShareGroupConfig.
    """

    def of(name: str) -> tuple[str, int]:
        return name, int(getattr(settings, name.replace(".", "_")))

    for kind, limited in LIMITED_OF_GROUPS.items():
        for what in limited:
            low, value, high = (of(f"group.{kind}.{which}{what}") for which in ("min.", "", "max."))
            at_most(low, high)
            at_most(value, high)
            if value[1] < low[1]:
                raise OptionError(f"broker config {value[0]}: must be at least {low[0]} ({low[1]}), got {value[1]}")
        interval, timeout = of(f"group.{kind}.heartbeat.interval.ms"), of(f"group.{kind}.session.timeout.ms")
        if interval[1] >= timeout[1]:
            what = f"must be below {timeout[0]} ({timeout[1]}), got {interval[1]}"
            raise OptionError(f"broker config {interval[0]}: {what}")
    at_most(of("group.share.max.size"), of("group.share.max.share.sessions"))
    assignors = [each.strip() for each in settings.group_share_assignors.split(",")]
    if len(assignors) != 1:
        raise OptionError(f"broker config group.share.assignors: must be one assignor, got {len(assignors)}")
    if assignors[0] not in SHARE_ASSIGNORS:
        names = " or ".join(SHARE_ASSIGNORS)
        raise OptionError(f"broker config group.share.assignors: must be {names}, got {assignors[0]!r}")


def at_most(value: tuple[str, int], limit: tuple[str, int]) -> None:
    """Raise OptionError if the value of a config is above that of another."""
    if value[1] > limit[1]:
        raise OptionError(f"broker config {value[0]}: must be at most {limit[0]} ({limit[1]}), got {value[1]}")


def is_default(name: str, text: str) -> bool:
    """Return whether a config has Kafka's default."""
    return text.strip() == (definitions(Resource.BROKER)[name].default or "")


def convert(values: dict[str, Any], others: Mapping[str, str]) -> None:
    """Set fields from configs in other units, and from those that Kafka takes in their place."""
    for name, (field, factor) in UNITS.items():
        if name in others:
            values.setdefault(field, int(others[name]) * factor)
    retention = values.get("log_retention_ms")
    if retention == 0:
        raise OptionError("broker config log.retention.ms: must be -1 (unlimited) or at least 1, got 0")
    if retention is not None and retention < 0:
        values["log_retention_ms"] = -1
    if "log_flush_scheduler_interval_ms" in values:
        values.setdefault("log_flush_interval_ms", values["log_flush_scheduler_interval_ms"])
    broker_id = int(others.get(BROKER_ID, -1))
    if broker_id >= 0 and values.setdefault("node_id", broker_id) != broker_id:
        raise OptionError(f"broker config node.id: must be that of broker.id ({broker_id}), got {values['node_id']}")
