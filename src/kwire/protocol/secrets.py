"""Messages without the secrets in them: for logs of requests, captures, error messages, anything that people see.

Hidden are passwords and proofs of them (SASL exchanges, SCRAM credentials), the keys of delegation tokens, and the
values of configs whose names speak of a secret, as Kafka's type PASSWORD does: keystore keys and passwords, JAAS
configurations. A null stays null, so that what was set and what was not can be told apart.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.messages.base import Message

__all__ = ["HIDDEN", "has_secrets", "hide_secrets", "is_secret_config"]

HIDDEN = "(hidden)"

# message -> paths of its fields that hold secrets; arrays are gone through
SECRETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "AlterUserScramCredentialsRequest": (("upsertions", "salt"), ("upsertions", "salted_password")),
    "CreateDelegationTokenResponse": (("hmac",),),
    "DescribeDelegationTokenResponse": (("tokens", "hmac"),),
    "EnvelopeRequest": (("request_data",),),
    "ExpireDelegationTokenRequest": (("hmac",),),
    "RenewDelegationTokenRequest": (("hmac",),),
    "SaslAuthenticateRequest": (("auth_bytes",),),
    "SaslAuthenticateResponse": (("auth_bytes",),),
    "UserScramCredentialRecord": (("salt",), ("stored_key",), ("server_key",)),
}
# message -> path of structs with `name` and `value` of a config
CONFIGS: dict[str, tuple[str, ...]] = {
    "AlterConfigsRequest": ("resources", "configs"),
    "ConfigRecord": (),
    "CreateTopicsRequest": ("topics", "configs"),
    "CreateTopicsResponse": ("topics", "configs"),
    "DescribeConfigsResponse": ("results", "configs"),
    "IncrementalAlterConfigsRequest": ("resources", "configs"),
}
SECRET_NAMES = (
    "password",
    "secret",
    "jaas.config",
    "keystore.key",
    "keystore.certificate.chain",
    "credential",
    "token",
)


def is_secret_config(name: str) -> bool:
    """Whether a config of this name holds a secret."""
    return any(part in name.lower() for part in SECRET_NAMES)


def has_secrets(message: Message) -> bool:
    """Whether hide_secrets could change a message of this kind."""
    name = type(message).__name__
    return name in SECRETS or name in CONFIGS


def hide_secrets(message: Any) -> Any:
    """message itself where it can hold no secret, else a copy whose secrets are HIDDEN."""
    if message is None or not has_secrets(message):
        return message
    message = copy.deepcopy(message)
    name = type(message).__name__
    for *way, field in SECRETS.get(name, ()):
        for struct in structs_at(message, way):
            if getattr(struct, field):
                setattr(struct, field, HIDDEN.encode())
    if name in CONFIGS:
        for config in structs_at(message, list(CONFIGS[name])):
            if config.value is not None and is_secret_config(config.name):
                config.value = HIDDEN
            for synonym in getattr(config, "synonyms", ()):
                if synonym.value is not None and is_secret_config(synonym.name):
                    synonym.value = HIDDEN
    return message


def structs_at(message: Any, way: list[str]) -> list[Any]:
    """The structs at the end of a path of arrays; a null array has none."""
    found = [message]
    for field in way:
        found = [each for struct in found for each in getattr(struct, field) or ()]
    return found
