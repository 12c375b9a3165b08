"""Client configs by Kafka's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.client import ClientSettings
from kwire.client import settings as settings_module
from kwire.client.settings import KNOWN
from kwire.client.unused_configs import REFUSED, WITHOUT_EFFECT
from kwire.errors import OptionError

DATA = Path(__file__).parents[1] / "data"
SERVERS = {"bootstrap.servers": "a:1"}
SASL = {"security.protocol": "SASL_SSL"}
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p"'


def kerberos(options: str) -> dict[str, str]:
    return {"sasl.jaas.config": f"{KERBEROS} required {options};", "sasl.kerberos.service.name": "kafka"}


def test_servers_may_have_protocols_and_brackets() -> None:
    settings = ClientSettings.parse({"bootstrap.servers": " a:1, PLAINTEXT://b.example:9092,[::1]:3 "})
    assert settings.bootstrap_servers == (("a", 1), ("b.example", 9092), ("::1", 3))


def test_underscores_synonyms_and_ignored_configs() -> None:
    given = {"bootstrap_servers": "a:1", "fetch_min_bytes": 5, "group.id": "g", "sasl.mechanisms": "PLAIN"}
    settings = ClientSettings.parse(given)
    assert (settings.fetch_min_bytes, settings.sasl_mechanism, settings.ignored) == (5, "PLAIN", ("group.id",))


def test_a_jaas_config_sets_user_and_password_and_no_repr_shows_them() -> None:
    jaas = (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="al\\"ice" password="wonder,=land";'
    )
    settings = ClientSettings.parse(
        {**SERVERS, "security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas}
    )
    assert (settings.sasl_username, settings.sasl_password) == ('al"ice', "wonder,=land")
    assert "wonder" not in repr(settings)
    assert settings.uses_sasl
    assert settings.uses_tls


@pytest.mark.parametrize(
    "jaas",
    [
        "org.PlainLoginModule\trequired\nusername='u' password='p; \"x';",
        'org.PlainLoginModule required username="u"password="p; \\"x"',
        " org.PlainLoginModule REQUIRED username = u password = 'p; \\\"x' ; ",
    ],
)
def test_a_jaas_config_has_javas_quotes_and_spaces(jaas: str) -> None:
    given = {**SERVERS, **SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    settings = ClientSettings.parse(given)
    assert (settings.sasl_username, settings.sasl_password) == ("u", 'p; "x')
    lines = kerberos("useTicketCache=true")["sasl.jaas.config"].replace(" ", "\n")
    login = ClientSettings.parse({**SERVERS, **SASL, "sasl.jaas.config": lines, "sasl.kerberos.service.name": "kafka"})
    assert login.kerberos is not None


@pytest.mark.parametrize("value", [None, b"secret", ["secret"], {"secret": 1}])
def test_a_value_that_is_no_text_is_refused_and_not_shown(value: object) -> None:
    """None as text was a password, a transactional id and a rack of four letters."""
    for name in ("transactional_id", "client.rack", "sasl.password", "ssl.ca.location", "security.protocol"):
        with pytest.raises(OptionError, match=f"'{name.replace('_', '.')}': expected text") as caught:
            ClientSettings.parse({**SERVERS, name: value})
        assert "secret" not in str(caught.value)
    assert ClientSettings.parse({**SERVERS, "ssl.ca.location": DATA}).ssl_ca_location == str(DATA)


def test_no_timeout_is_longer_than_the_overall_timeout() -> None:
    settings = ClientSettings.parse({**SERVERS, "default.api.timeout.ms": "1500"})
    assert (settings.request_timeout_ms, settings.socket_connection_setup_timeout_ms) == (1500, 1500)
    settings = ClientSettings.parse({**SERVERS, "default.api.timeout.ms": "1500", "request.timeout.ms": "2000"})
    assert settings.request_timeout_ms == 2000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "'bootstrap.servers' is required"),
        ({"bootstrap.servers": "a"}, "expected comma-separated host:port"),
        ({**SERVERS, "bootstrap.server": "b:1"}, r"unknown config 'bootstrap.server' \(did you mean"),
        ({**SERVERS, "acks": "2"}, "'acks': expected all, 1 or 0"),
        ({**SERVERS, "fetch.min.bytes": "-1"}, "'fetch.min.bytes': expected"),
        ({**SERVERS, "fetch.min.bytes": "many"}, "'fetch.min.bytes': expected a number"),
        (
            {**SERVERS, "receive.buffer.bytes": "3000000000"},
            "'receive.buffer.bytes': expected a number up to 2147483647",
        ),
        ({**SERVERS, "security.protocol": "TLS"}, "expected one of PLAINTEXT"),
        ({**SERVERS, "security.protocol": "SASL_SSL"}, "'sasl.kerberos.service.name' is required with sasl.mechanism"),
        ({**SERVERS, **SASL, "sasl.mechanism": "PLAIN"}, "'sasl.username' is required with sasl.mechanism PLAIN"),
        ({**SERVERS, "sasl.jaas.config": "nonsense"}, "'sasl.jaas.config'"),
        ({**SERVERS, **SASL, "sasl.jaas.config": f"{KERBEROS} required;"}, "expected useKeyTab=true or useTicketCache"),
        ({**SERVERS, **SASL, "sasl.jaas.config": KERBEROS}, "expected ...LoginModule required"),
        ({**SERVERS, **SASL, **kerberos("useKeyTab=true useTicketCache=true")}, "mutually exclusive"),
        ({**SERVERS, **SASL, **kerberos("useKeyTab=true keyTab=k")}, "requires keyTab and principal"),
        ({**SERVERS, **SASL, **kerberos("useKeyTab=true principal=p")}, "requires keyTab and principal"),
        ({**SERVERS, **SASL, **kerberos("useTicketCache=true keyTab=k")}, "a keytab requires useKeyTab=true"),
        ({**SERVERS, **SASL, **kerberos("useKeyTab=yes")}, "option useKeyTab: expected true or false"),
        ({**SERVERS, **SASL, **kerberos("useTicketCache=true storePass=true")}, "option storePass='true' of"),
        ({**SERVERS, **SASL, **kerberos("useTicketCache=true isInitiator=false")}, "option isInitiator='false' of"),
        (
            {**SERVERS, **SASL, **kerberos("useTicketCache=true serviceName=a"), "sasl.kerberos.service.name": "b"},
            "'sasl.kerberos.service.name' is 'b', but serviceName in sasl.jaas.config is 'a'",
        ),
        (
            {**SERVERS, **SASL, "sasl.jaas.config": "com.ibm.security.auth.module.Krb5LoginModule required x=y;"},
            "GSSAPI requires com.sun.security.auth.module.Krb5LoginModule",
        ),
        (
            {**SERVERS, **SASL, "sasl.mechanism": "PLAIN", **kerberos("useTicketCache=true")},
            "Krb5LoginModule in sasl.jaas.config requires GSSAPI",
        ),
        (
            {**SERVERS, **SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{SCRAM} tokenauth=true;"},
            "tokenauth requires a SCRAM mechanism, got PLAIN",
        ),
        ({**SERVERS, "sasl.login.class": "com.example.Login"}, "is not supported: Java classes cannot be loaded"),
        ({**SERVERS, "config.providers": "env"}, "is not supported: references such as"),
        ({**SERVERS, "bootstrap.controllers": "a:1"}, "set bootstrap.servers"),
        ({**SERVERS, "transaction.two.phase.commit.enable": "true"}, "does not support two-phase commit"),
        ({**SERVERS, "compression.gzip.level": "0"}, "'compression.gzip.level': expected a number from 1 to 9"),
        ({**SERVERS, "compression.lz4.level": "18"}, "expected a number from 1 to 17"),
        ({**SERVERS, "compression.zstd.level": "23"}, "expected a number from -131072 to 22"),
        ({**SERVERS, "ssl.ca.location": "a", "ssl.truststore.location": "b"}, "to different values; remove one"),
        ({**SERVERS, "client_rack": "a", "client.rack": "b"}, "'client_rack' and 'client.rack' set the same"),
        (
            {**SERVERS, "ssl.ca.location": "a", "ssl.truststore.certificates": "b"},
            "has the trusted certificates already",
        ),
        ({**SERVERS, "ssl.keystore.location": "a", "ssl.keystore.key": "b"}, "a file has the client's key already"),
        ({**SERVERS, "ssl.keystore.key": "a"}, "without 'ssl.keystore.certificate.chain' the client would present no"),
        ({**SERVERS, "ssl.keystore.certificate.chain": "a"}, "without 'ssl.keystore.key'"),
        ({**SERVERS, "ssl.key.location": "a"}, "without 'ssl.certificate.location'"),
        (
            {**SERVERS, "ssl.truststore.certificates": " "},
            "'ssl.truststore.certificates': expected a value, as in Java",
        ),
        ({**SERVERS, "ssl.endpoint.identification.algorithm": "none"}, "expected https, or nothing to skip"),
        ({**SERVERS, "ssl.endpoint.identification.algorithm": " "}, "expected https, or nothing to skip"),
        (
            {
                **SERVERS,
                **SASL,
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": f"{SCRAM};",
                "sasl.username": "v",
            },
            "'sasl.username': sasl.jaas.config has another one",
        ),
        ({**SERVERS, "transactional.id": "t", "enable.idempotence": False}, "a transactional producer requires true"),
        ({**SERVERS, "ssl.truststore.password": "x"}, "without 'ssl.truststore.location' it opens nothing"),
        ({**SERVERS, "ssl.keystore.password": "x"}, "without 'ssl.keystore.location' it opens nothing"),
        ({**SERVERS, "sasl.jaas.config": f"{SCRAM}; {SCRAM};"}, "expected ...LoginModule required"),
        ({**SERVERS, "sasl.jaas.config": f"{SCRAM} tokenauth;"}, "expected ...LoginModule required"),
    ],
)
def test_errors_name_the_config_and_the_expected_value(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ClientSettings.parse(given)


def test_every_config_of_the_java_clients_is_accepted_or_refused_with_a_reason() -> None:
    # Facts: the names in ConsumerConfig, ProducerConfig and AdminClientConfig of Kafka 3.9.1 and 4.4.0.
    lines = (DATA / "client_settings.tsv").read_text().splitlines()[1:]
    names = [line.split("\t")[0] for line in lines]
    assert len(names) > 140

    def response(name: str) -> str:
        try:
            ClientSettings.parse({**SERVERS, name: "x"})
        except OptionError as error:
            return str(error)
        return ""

    responses = {name: response(name) for name in names}
    assert [name for name, text in responses.items() if "unknown config" in text] == []
    refused = {name for name, text in responses.items() if "is not supported" in text}
    assert {name for name in refused if not name.startswith("sasl.oauthbearer.assertion.")} == {
        "bootstrap.controllers",
        "config.providers",
        "interceptor.classes",
        "partitioner.class",
        "partitioner.ignore.keys",
        "sasl.client.callback.handler.class",
        "sasl.login.class",
        "security.providers",
        "ssl.engine.factory.class",
        "ssl.provider",
    }


def test_every_config_is_obeyed_refused_or_in_one_list() -> None:
    without_effect = [name for names in WITHOUT_EFFECT.values() for name in names]
    assert len(without_effect) == len(set(without_effect))
    assert not set(without_effect) & {*KNOWN, *REFUSED}
    assert not KNOWN.keys() & REFUSED.keys()
    names = [line.split("\t")[0] for line in (DATA / "client_settings.tsv").read_text().splitlines()[1:]]
    assert set(without_effect) <= set(names)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("interceptor.classes", ""),
        ("ssl.provider", " "),
        ("partitioner.ignore.keys", False),
        ("partitioner.class", "org.apache.kafka.clients.producer.internals.DefaultPartitioner"),
    ],
)
def test_refused_configs_may_have_the_value_that_means_the_same(name: str, value: object) -> None:
    assert ClientSettings.parse({**SERVERS, name: value}).ignored == (name,)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_each_refused_config_is_an_error_with_its_reason(name: str) -> None:
    given = name.replace("*", "file")
    with pytest.raises(OptionError) as caught:
        ClientSettings.parse({**SERVERS, given: "x"})
    assert str(caught.value) == f"config '{given}' is not supported: {REFUSED[name]}"


@pytest.mark.parametrize("name", sorted(name for names in WITHOUT_EFFECT.values() for name in names))
def test_each_config_without_effect_is_warned_of_exactly_once(
    name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.client.settings._warned", set())
    for given in (name, name, name.replace(".", "_")):
        assert ClientSettings.parse({**SERVERS, given: "x"}).ignored == (name,)
    (reason,) = (reason for reason, names in WITHOUT_EFFECT.items() if name in names)
    assert caplog.messages == [f"configs without effect: {name} ({reason})"]


def test_configs_without_effect_are_named_once_in_a_process(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.client.settings._warned", set())
    given = {**SERVERS, "linger.ms": 5, "group.id": "g", "client.id": "me", "max.poll.records": 10}
    for more in ({}, {}, {"retries": 3}):
        ClientSettings.parse({**given, **more})
    assert [record.getMessage() for record in caplog.records] == [
        "configs without effect: linger.ms (batches are complete when they are sent, one request of a partition at a "
        "time); group.id, max.poll.records (records are read by offsets, without a consumer group)",
        "configs without effect: retries (default.api.timeout.ms limits retries)",
    ]


def test_the_age_of_metadata_matters_with_a_rack_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.client.settings._warned", set())
    age = {**SERVERS, "metadata_max_age_ms": str((1 << 63) - 1)}  # a long in Java
    settings = ClientSettings.parse({**age, "client.rack": "a"})
    assert (settings.metadata_max_age_ms, settings.client_rack, settings.ignored) == ((1 << 63) - 1, "a", ())
    assert caplog.messages == []
    for rack in ({}, {"client.rack": ""}):
        assert ClientSettings.parse({**age, **rack}).ignored == ("metadata.max.age.ms",)
    assert caplog.messages == [
        "configs without effect: metadata.max.age.ms (without client.rack: metadata is renewed when a request fails)"
    ]
    for wrong in ("-1", str(1 << 63), "5m"):
        with pytest.raises(OptionError, match=r"config 'metadata\.max\.age\.ms': expected a number from 0 on"):
            ClientSettings.parse({**SERVERS, "metadata.max.age.ms": wrong})


def test_the_compression_level_is_that_of_the_codec() -> None:
    levels = {"compression.gzip.level": "9", "compression.zstd.level": "-5"}
    for codec, level in (("gzip", 9), ("zstd", -5), ("lz4", None), ("snappy", None), ("none", None)):
        assert ClientSettings.parse({**SERVERS, **levels, "compression.type": codec}).compression_level == level


def test_no_error_shows_a_secret() -> None:
    with pytest.raises(OptionError) as caught:
        ClientSettings.parse({**SERVERS, "sasl.jaas.config": "password=wonderland"})
    assert "wonderland" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("compression.gzip.level", 1, 9),
        ("compression.lz4.level", 1, 17),
        ("compression.zstd.level", -131072, 22),
    ],
)
def test_ranges_include_their_bounds(name: str, low: int, high: int) -> None:
    codec = {"compression.type": name.split(".")[1]}
    for value in (low, high):
        assert ClientSettings.parse({**SERVERS, **codec, name: str(value)})
    for value in (low - 1, high + 1):
        if (name, value) != ("compression.gzip.level", 0 - 1):
            with pytest.raises(OptionError, match=f"expected a number from {low} to {high}"):
                ClientSettings.parse({**SERVERS, **codec, name: str(value)})


def test_ports_are_from_1_to_65535() -> None:
    for port in (1, 65535):
        assert ClientSettings.parse({"bootstrap.servers": f"b:{port}"}).bootstrap_servers == (("b", port),)
    for port in (0, 65536):
        with pytest.raises(OptionError, match="expected comma-separated host:port"):
            ClientSettings.parse({"bootstrap.servers": f"b:{port}"})


def test_all_versions_of_tls_may_be_named() -> None:
    for versions in ("TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"):
        assert ClientSettings.parse({**SERVERS, "ssl.enabled.protocols": versions})
    with pytest.raises(OptionError, match=r"TLSv1\.2 and TLSv1\.3"):
        ClientSettings.parse({**SERVERS, "ssl.enabled.protocols": "TLSv1.2,TLSv1.1"})


def test_logins_and_certificates_that_the_protocol_leaves_without_effect_are_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_module, "_warned", set())
    given = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p", "ssl.ca.location": "ca.pem"}
    ClientSettings.parse({**SERVERS, **given, "security.protocol": "SASL_SSL"})
    assert caplog.messages == []
    ClientSettings.parse({**SERVERS, **given})
    assert caplog.messages == [
        "security.protocol is PLAINTEXT, so connections do not log in; configs without effect: sasl.mechanism, "
        "sasl.password, sasl.username",
        "security.protocol is PLAINTEXT, so connections are not encrypted; configs without effect: ssl.ca.location",
    ]
    ClientSettings.parse({**SERVERS, **given})
    assert len(caplog.messages) == 2


def test_the_same_value_under_two_names_is_accepted() -> None:
    settings = ClientSettings.parse({**SERVERS, "ssl.ca.location": "a", "ssl.truststore.location": "a"})
    assert settings.ssl_ca_location == "a"
