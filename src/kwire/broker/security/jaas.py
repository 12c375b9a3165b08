"""Users in the JAAS configuration of a broker.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="..." user_alice="...";

PlainLoginModule: each option user_NAME is a user and its password. username and password are the broker's own login,
which a single node does not need. ScramLoginModule: username and password, also a user in Kafka.
OAuthBearerLoginModule has no users.
Values are quoted if they have a character that no class name has.
Source: org.apache.kafka.common.security.JaasConfig, plain.internals.PlainServerCallbackHandler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kwire.errors import OptionError

__all__ = ["users_of"]

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
USER = "user_"
TOKEN_CHECKS = "unsecuredValidator"
"""Options of this kind narrow down which unsigned tokens are valid."""
TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;"']+))""", re.DOTALL)


def users_of(text: str) -> dict[str, str]:
    """Return the users and passwords of a JAAS configuration. Raises OptionError, which never contains a value."""
    tokens = list(tokens_of(text))
    if not tokens or tokens[-1] != (";", True):
        raise OptionError("JAAS configuration does not end with ';'")
    users: dict[str, str] = {}
    start = 0
    for end, token in enumerate(tokens):
        if token == (";", True):
            users |= users_of_module(tokens[start:end])
            start = end + 1
    return users


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


def users_of_module(tokens: list[tuple[str, bool]]) -> dict[str, str]:
    """Return the users of one login module: a class, a flag, options as name, '=', value."""
    module, options = tokens[0][0] if tokens else "", tokens[2:]
    if len(tokens) < 2 or tokens[1][0].lower() not in FLAGS:
        raise OptionError("login module has no control flag; add 'required'")
    if len(options) % 3 or any(sign != ("=", True) for sign in options[1::3]):
        raise OptionError("login module has an invalid option; use name=value")
    values = {name: value for (name, _), (value, _) in zip(options[::3], options[2::3], strict=True)}
    if module == PLAIN_MODULE:
        return {name.removeprefix(USER): value for name, value in values.items() if name.startswith(USER)}
    if module == SCRAM_MODULE:
        return {values["username"]: values.get("password", "")} if "username" in values else {}
    if module == OAUTH_MODULE:
        if checks := [name for name in values if name.startswith(TOKEN_CHECKS)]:
            raise OptionError(f"login module option {checks[0]} is not supported; validate tokens with a function")
        return {}
    available = ", ".join((PLAIN_MODULE, SCRAM_MODULE, OAUTH_MODULE))
    raise OptionError(f"login module {module!r} is not supported; available: {available}")
