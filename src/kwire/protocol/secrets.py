"""Redaction of messages for request logs, captures, error messages and everything else that people read.

Redacted are passwords and proofs of them (SASL exchanges, SCRAM credentials), ids and keys of delegation tokens, and
values of configs that Kafka defines with type PASSWORD: keystore keys and passwords, JAAS configurations. Null remains
null, which shows that a config is not set.
Source: MetadataNodeRedactionCriteria; the configs of type PASSWORD in Kafka's configuration classes.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from kwire.messages.base import Message

M = TypeVar("M", bound="Message | None")

__all__ = ["HIDDEN", "SECRETS", "has_secrets", "hide_secrets", "is_secret_config", "is_secret_setting"]

HIDDEN = "[hidden]"
"""Replaces a secret, as Kafka does for configs of type PASSWORD."""

# message -> paths of its secret fields, through arrays
SECRETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "AlterUserScramCredentialsRequest": (("upsertions", "salt"), ("upsertions", "salted_password")),
    "CreateDelegationTokenResponse": (("hmac",),),
    "DelegationTokenRecord": (("token_id",),),
    "DescribeDelegationTokenResponse": (("tokens", "hmac"),),
    "EnvelopeRequest": (("request_data",),),
    "ExpireDelegationTokenRequest": (("hmac",),),
    "RemoveDelegationTokenRecord": (("token_id",),),
    "RenewDelegationTokenRequest": (("hmac",),),
    "SaslAuthenticateRequest": (("auth_bytes",),),
    "SaslAuthenticateResponse": (("auth_bytes",),),
    "UserScramCredentialRecord": (("salt",), ("stored_key",), ("server_key",)),
}
# message -> path of the structs with the `name` and `value` of a config
CONFIGS: dict[str, tuple[str, ...]] = {
    "AlterConfigsRequest": ("resources", "configs"),
    "ConfigRecord": (),
    "CreateTopicsRequest": ("topics", "configs"),
    "CreateTopicsResponse": ("topics", "configs"),
    "DescribeConfigsResponse": ("results", "configs"),
    "IncrementalAlterConfigsRequest": ("resources", "configs"),
}
SECRET_SETTINGS = re.compile(
    r"(^|\.)(ssl\.keystore\.key|ssl\.keystore\.certificate\.chain|ssl\.truststore\.certificates|sasl\.jaas\.config"
    r"|delegation\.token\.(master|secret)\.key|password\.encoder\..*secret)$"
    r"|password|passphrase|secret|credential|jaas|private[._-]?key",
    re.IGNORECASE,
)
# Matches of the pattern above that are not secret: how passwords are stored, and where.
HARMLESS = re.compile(r"^password\.encoder\.(?!.*secret)|\.(file|location|path|class|type|algorithm)$", re.IGNORECASE)
SECRET_WORDS = (
    "password",
    "secret",
    "jaas.config",
    "keystore.key",
    "keystore.certificate.chain",
    "credential",
    "token",
)


def is_secret_setting(name: str) -> bool:
    """Return whether the value of one of Kafka's configs is secret."""
    return SECRET_SETTINGS.search(name) is not None and HARMLESS.search(name) is None


def is_secret_config(name: str) -> bool:
    """Return whether the value of a config sent by a client is secret; when in doubt, it is."""
    return is_secret_setting(name) or any(word in name.lower() for word in SECRET_WORDS)


def has_secrets(message: Message) -> bool:
    """Return whether messages of this class may hold secrets."""
    name = type(message).__name__
    return name in SECRETS or name in CONFIGS


def hide_secrets(message: M) -> M:
    """Return a copy of message with HIDDEN in place of secrets; message itself if it cannot hold any."""
    if message is None or not has_secrets(message):
        return message
    message = copy.deepcopy(message)
    name = type(message).__name__
    for *path, field in SECRETS.get(name, ()):
        for struct in structs_at(message, path):
            if getattr(struct, field):
                setattr(struct, field, HIDDEN if isinstance(getattr(struct, field), str) else HIDDEN.encode())
    if name in CONFIGS:
        for config in structs_at(message, list(CONFIGS[name])):
            if config.value is not None and is_secret_config(config.name):
                config.value = HIDDEN
            for synonym in getattr(config, "synonyms", ()):
                if synonym.value is not None and is_secret_config(synonym.name):
                    synonym.value = HIDDEN
    return message


def structs_at(message: Message, path: list[str]) -> list[Any]:
    """Return the structs at the end of a path of arrays; none for a null array."""
    structs: list[Any] = [message]
    for field in path:
        structs = [each for struct in structs for each in getattr(struct, field) or ()]
    return structs
