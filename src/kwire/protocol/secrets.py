"""Messages without the secrets in them: for logs of requests, captures, error messages, anything that people see.

Hidden are passwords and proofs of them (SASL exchanges, SCRAM credentials), ids and keys of delegation tokens, and the
values of configs whose names speak of a secret, as Kafka's type PASSWORD does: keystore keys and passwords, JAAS
configurations. A null stays null, so that what was set and what was not can be told apart.
Source: MetadataNodeRedactionCriteria; the settings of type PASSWORD in Kafka's configuration classes.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.messages.base import Message

__all__ = ["HIDDEN", "SECRETS", "has_secrets", "hide_secrets", "is_secret_config", "is_secret_setting"]

HIDDEN = "[hidden]"
"""As Kafka shows a setting of type PASSWORD."""

# message -> paths of its fields that hold secrets; arrays are gone through
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
# message -> path of structs with `name` and `value` of a config
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
# what the names above catch and is none: how passwords are kept, and where
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
    """Whether a setting of that name, one of Kafka's, has a secret as its value."""
    return SECRET_SETTINGS.search(name) is not None and HARMLESS.search(name) is None


def is_secret_config(name: str) -> bool:
    """The same for a name that a client has sent, which may be anybody's: rather one too many."""
    return is_secret_setting(name) or any(word in name.lower() for word in SECRET_WORDS)


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
                setattr(struct, field, HIDDEN if isinstance(getattr(struct, field), str) else HIDDEN.encode())
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
