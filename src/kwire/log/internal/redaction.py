"""What in internal topics is a secret, and rows without it.

    SCRAM credentials    salt, stored key, server key: enough to try passwords, or to play the server
    delegation tokens    the token's id: half of what it takes to use one
    settings             passwords, keys and login modules by their names, also behind `listener.name.NAME.`

That they are there stays visible; the value does not. Of a metadata record that cannot be read no bytes are shown, as
nobody knows what is in them.
Source: MetadataNodeRedactionCriteria; the settings of type PASSWORD in Kafka's configuration classes.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["REDACTED", "is_secret_setting", "redacted"]

REDACTED = "(redacted)"

SECRET_FIELDS = {
    "UserScramCredentialRecord": ("salt", "storedKey", "serverKey"),
    "DelegationTokenRecord": ("tokenId",),
    "RemoveDelegationTokenRecord": ("tokenId",),
}
SECRET_SETTINGS = re.compile(
    r"(^|\.)(ssl\.keystore\.key|ssl\.keystore\.certificate\.chain|ssl\.truststore\.certificates|sasl\.jaas\.config"
    r"|delegation\.token\.(master|secret)\.key|password\.encoder\..*secret)$"
    r"|password|passphrase|secret|credential|jaas|private[._-]?key",
    re.IGNORECASE,
)
# what the names above catch and is none: how passwords are kept, and where
HARMLESS = re.compile(r"^password\.encoder\.(?!.*secret)|\.(file|location|path|class|type|algorithm)$", re.IGNORECASE)


def is_secret_setting(name: str) -> bool:
    """Whether a setting of that name has a secret as its value."""
    return SECRET_SETTINGS.search(name) is not None and HARMLESS.search(name) is None


def redacted(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """A record's value in Kafka's JSON form, secrets replaced; null stays null."""
    secrets = SECRET_FIELDS.get(kind, ())
    if kind == "ConfigRecord" and is_secret_setting(value["name"]):
        secrets = ("value",)
    return value | {name: REDACTED for name in secrets if value.get(name) is not None}
