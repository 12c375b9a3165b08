"""Users in JAAS configurations."""

from __future__ import annotations

import pytest

from kwire.broker.configs.given import parse_settings
from kwire.broker.security.jaas import users_of
from kwire.errors import OptionError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
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
    assert users_of(text) == dict(user.split(":") for user in users.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{PLAIN} required user_alice="hidden"', "does not end with ';'"),
        (f'{PLAIN} required user_alice="hidden;', "an unclosed quote at character"),
        (f'{PLAIN} user_alice="hidden";', "has no control flag"),
        (f'{PLAIN} required user_alice "hidden";', "invalid option; use name=value"),
        (f'{OAUTH} required unsecuredValidatorRequiredScope="hidden";', "unsecuredValidatorRequiredScope is not"),
        ("com.sun.security.auth.module.Krb5LoginModule required;", "is not supported"),
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
