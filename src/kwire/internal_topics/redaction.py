"""What in internal topics is a secret, and rows without it.

    SCRAM credentials    salt, stored key, server key: enough to try passwords, or to play the server
    delegation tokens    the token's id: half of what it takes to use one
    settings             passwords, keys and login modules by their names, also behind `listener.name.NAME.`

That they are there stays visible; the value does not. Of a metadata record that cannot be read no bytes are shown, as
nobody knows what is in them. Which fields and names: kwire.protocol.secrets.
Source: MetadataNodeRedactionCriteria.
"""

from __future__ import annotations

import re
from typing import Any

from kwire.protocol import HIDDEN, is_secret_setting
from kwire.protocol.secrets import SECRETS

__all__ = ["redacted"]

# by the names of Kafka's JSON form
SECRET_FIELDS = {
    name: tuple(re.sub("_(.)", lambda found: found[1].upper(), way[-1]) for way in ways)
    for name, ways in SECRETS.items()
    if name.endswith("Record")
}


def redacted(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """A record's value in Kafka's JSON form, secrets replaced; null stays null."""
    secrets = SECRET_FIELDS.get(kind, ())
    if kind == "ConfigRecord" and is_secret_setting(value["name"]):
        secrets = ("value",)
    return value | {name: HIDDEN for name in secrets if value.get(name) is not None}
