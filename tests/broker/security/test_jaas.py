"""Users in JAAS configurations."""

from __future__ import annotations

import pytest

from kwire.broker.configs.given import parse_settings
from kwire.broker.security.jaas import Jaas, read_jaas
from kwire.errors import OptionError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
KEY = f"{KERBEROS} required useKeyTab=true keyTab=k "
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("text", "users"),
    [
        (f'{PLAIN} required username="admin" password="x" user_alice="one" user_bob="two";', "alice:one bob:two"),
        (f"{PLAIN} REQUIRED user_alice=one;", "alice:one"),
        (f'{PLAIN} required user_a_b="=;";', "a_b:=;"),
        (f'{PLAIN} required username="admin" password="x";', ""),
        (f"{SCRAM} required username='alice' password='one';", "alice:one"),
        (f"{SCRAM} required;", ""),
        (f'{OAUTH} required unsecuredLoginStringClaim_sub="admin";', ""),
        (f'{PLAIN} required user_a="1"; {SCRAM} sufficient username=b password=2;', "a:1 b:2"),
    ],
)
def test_users_are_read_from_login_modules(text: str, users: str) -> None:
    assert read_jaas(text).users == dict(user.split(":") for user in users.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{PLAIN} required user_alice="hidden"', "does not end with ';'"),
        (f'{PLAIN} required user_alice="hidden;', "an unclosed quote at character"),
        (f'{PLAIN} user_alice="hidden";', "has no control flag"),
        (f'{PLAIN} required user_alice "hidden";', "invalid option; use name=value"),
        (f'{OAUTH} required unsecuredValidatorRequiredScope="hidden";', "unsecuredValidatorRequiredScope is not"),
        ("com.sun.security.auth.module.Other required;", "is not supported"),
        (f"{KERBEROS} required;", "requires useKeyTab=true, keyTab and principal"),
        (f"{KERBEROS} required useKeyTab=true keyTab=k;", "requires useKeyTab=true, keyTab and principal"),
        (f"{KERBEROS} required useKeyTab=false keyTab=k principal=p;", "requires useKeyTab=true, keyTab and principal"),
        (f"{KERBEROS} required useKeyTab=true keyTab=k principal=p useTicketCache=true;", "useTicketCache is not"),
        (f"{KEY}principal=p; {KEY}principal=q;", "several login modules of Kerberos"),
        ("", "does not end with ';'"),
        (";", "has no control flag"),
    ],
)
def test_an_invalid_configuration_is_rejected_without_its_values(text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_settings({"listener.name.a.plain.sasl.jaas.config": text})
    assert str(caught.value).startswith("listener.name.a.plain.sasl.jaas.config: ")
    assert message in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_the_key_of_kerberos_is_read_from_its_login_module() -> None:
    jaas = read_jaas(f'{PLAIN} required user_a="1"; {KEY} storeKey=true principal="kafka/h@R" serviceName=kafka;')
    assert jaas == Jaas({"a": "1"}, "k", "kafka/h@R", "kafka")
    given = {
        "listener.name.a.gssapi.sasl.jaas.config": f'{KEY} principal="kafka/h@R";',
        "sasl.enabled.mechanisms": "GSSAPI",
    }
    settings = parse_settings({**given, "sasl.kerberos.service.name": "kafka"})
    assert (settings.kerberos_keytab, settings.kerberos_principal) == ("k", "kafka/h@R")
    assert settings.listeners.startswith("SASL_PLAINTEXT://")
    with pytest.raises(OptionError, match=r"kerberos\.principal differ: 'kafka/h@R' and 'kafka/other@R'"):
        parse_settings({**given, "kerberos_principal": "kafka/other@R"})


def test_listeners_have_the_same_key_of_kerberos() -> None:
    names = [f"listener.name.{name}.gssapi.sasl.jaas.config" for name in ("a", "b")]
    given = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
    }
    assert parse_settings({**given, **dict.fromkeys(names, f"{KEY} principal=p;")}).kerberos_principal == "p"
    with pytest.raises(OptionError, match="different Kerberos keys are not supported"):
        parse_settings({**given, **{name: f"{KEY} principal={at};" for at, name in enumerate(names)}})


@pytest.mark.parametrize("name", ["sasl.kerberos.principal.to.local.rule", "sasl.kerberos.service.nam"])
def test_a_misspelled_config_of_kerberos_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="more open"):
        parse_settings({name: "x"})
