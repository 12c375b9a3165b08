"""The JAAS configuration of a broker: users, and its Kerberos key.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="..." user_alice="...";

PlainLoginModule: each option user_NAME is a user and its password. username and password are the broker's own login,
which a single node does not need. ScramLoginModule: username and password, also a user in Kafka. Krb5LoginModule:
keyTab and principal. OAuthBearerLoginModule has no users.
Values are quoted if they have a character that no class name has.
Source: org.apache.kafka.common.security.JaasConfig, plain.internals.PlainServerCallbackHandler;
com.sun.security.auth.module.Krb5LoginModule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kwire.errors import OptionError

__all__ = ["Jaas", "read_jaas"]

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
USER = "user_"
TOKEN_CHECKS = "unsecuredValidator"
"""Options of this kind narrow down which unsigned tokens are valid."""
WITHOUT_EFFECT = frozenset({"debug", "doNotPrompt", "isInitiator", "refreshKrb5Config", "storeKey"})
"""Options of Krb5LoginModule for Java's own memory, and for the broker's connections to others."""
TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;"']+))""", re.DOTALL)


class Jaas(NamedTuple):
    """Settings of login modules. users: passwords by name. keytab, principal, service: "" without Kerberos."""

    users: Mapping[str, str]
    keytab: str = ""
    principal: str = ""
    service: str = ""

    def joined(self, other: Jaas) -> Jaas:
        """Return both. Raises OptionError for two Kerberos keys."""
        if self.keytab and other.keytab and self[1:] != other[1:]:
            raise OptionError("several login modules of Kerberos are not supported; name one keytab and principal")
        return Jaas({**self.users, **other.users}, *(other if other.keytab else self)[1:])


def read_jaas(text: str) -> Jaas:
    """Return what a JAAS configuration says. Raises OptionError, which never contains a password."""
    tokens = list(tokens_of(text))
    if not tokens or tokens[-1] != (";", True):
        raise OptionError("JAAS configuration does not end with ';'")
    jaas = Jaas({})
    start = 0
    for end, token in enumerate(tokens):
        if token == (";", True):
            jaas = jaas.joined(read_module(tokens[start:end]))
            start = end + 1
    return jaas


def tokens_of(text: str) -> Iterator[tuple[str, bool]]:
    """Split into (token, whether it is '=' or ';')."""
    pos = 0
    while text[pos:].strip():
        match = TOKEN.match(text, pos)
        if match is None:
            raise OptionError(f"JAAS configuration has an unclosed quote at character {pos}")
        double, single, sign, word = match.groups()
        quoted = double if double is not None else single
        yield (re.sub(r"\\(.)", r"\1", quoted), False) if quoted is not None else (sign or word, sign is not None)
        pos = match.end()


def read_module(tokens: list[tuple[str, bool]]) -> Jaas:
    """Return what one login module says: a class, a flag, options as name, '=', value."""
    module, options = tokens[0][0] if tokens else "", tokens[2:]
    if len(tokens) < 2 or tokens[1][0].lower() not in FLAGS:
        raise OptionError("login module has no control flag; add 'required'")
    if len(options) % 3 or any(sign != ("=", True) for sign in options[1::3]):
        raise OptionError("login module has an invalid option; use name=value")
    values = {name: value for (name, _), (value, _) in zip(options[::3], options[2::3], strict=True)}
    if module == PLAIN_MODULE:
        return Jaas({name.removeprefix(USER): value for name, value in values.items() if name.startswith(USER)})
    if module == SCRAM_MODULE:
        return Jaas({values["username"]: values.get("password", "")} if "username" in values else {})
    if module == KERBEROS_MODULE:
        return read_kerberos(values)
    if module == OAUTH_MODULE:
        if checks := [name for name in values if name.startswith(TOKEN_CHECKS)]:
            raise OptionError(f"login module option {checks[0]} is not supported; validate tokens with a function")
        return Jaas({})
    available = ", ".join((PLAIN_MODULE, SCRAM_MODULE, OAUTH_MODULE, KERBEROS_MODULE))
    raise OptionError(f"login module {module!r} is not supported; available: {available}")


def read_kerberos(values: dict[str, str]) -> Jaas:
    """Return the key that the options of Krb5LoginModule name."""
    known = {"keyTab", "principal", "serviceName", "useKeyTab", *WITHOUT_EFFECT}
    if unknown := [name for name in values if name not in known]:
        raise OptionError(f"login module option {unknown[0]} is not supported; use useKeyTab, keyTab and principal")
    if values.get("useKeyTab", "").lower() != "true" or not values.get("keyTab") or not values.get("principal"):
        raise OptionError("Krb5LoginModule of a broker requires useKeyTab=true, keyTab and principal")
    return Jaas({}, values["keyTab"], values["principal"], values.get("serviceName", ""))
