"""Hiding secrets in records of internal topics.

    SCRAM credentials    salt, stored key, server key: enough to test passwords, or to impersonate the server
    delegation tokens    the token's id: half of what a client needs to use it
    configs              passwords, keys and login modules by their names, also with the prefix `listener.name.NAME.`

Redacted fields stay visible without their values. Unreadable metadata records are hidden entirely, because they may
contain any secret. kwire.protocol.secrets lists fields and names.
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
    name: tuple(re.sub("_(.)", lambda match: match[1].upper(), way[-1]) for way in ways)
    for name, ways in SECRETS.items()
    if name.endswith("Record")
}


def redacted(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """Replace the secrets in a record's JSON form; null stays null."""
    secrets = SECRET_FIELDS.get(kind, ())
    if kind == "ConfigRecord" and is_secret_setting(value["name"]):
        secrets = ("value",)
    return value | {name: HIDDEN for name in secrets if value.get(name) is not None}
