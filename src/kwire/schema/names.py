"""Names derived from a definition's names. Source: org.apache.kafka.message.MessageGenerator."""

from __future__ import annotations

import keyword
import re

NAME_RULE = "a name must be a letter followed by letters and digits"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*\Z")


def camel_name(name: str) -> str:
    """Lower the first letter: `ISR` becomes `iSR`. Kafka's accessor and JSON key."""
    return name[:1].lower() + name[1:]


def class_name(name: str) -> str:
    """Raise the first letter."""
    return name[:1].upper() + name[1:]


def snake_name(name: str) -> str:
    """Convert to snake case: `fooBarBaz` to foo_bar_baz, `TopicID` to topic_id, `ISRNodes` to isrnodes.

    An upper-case letter is lowered and gets an underscore before it unless it is the first or follows another one.
    """
    out: list[str] = []
    after_upper = True
    for letter in name:
        upper = letter.isupper()
        if upper and not after_upper:
            out.append("_")
        out.append(letter.lower())
        after_upper = upper
    return "".join(out)


def is_name(name: str) -> bool:
    """Whether a name follows NAME_RULE."""
    return _NAME.match(name) is not None


def wrong_class_name(name: str) -> str | None:
    """Return why a message or struct cannot have the name (T-09: it becomes a class, module and file), or None."""
    if not is_name(name):
        return NAME_RULE
    return "it is a Python keyword" if keyword.iskeyword(name) else None


OBJECT_ATTRIBUTES = frozenset(
    {
        *("check_version", "decode", "decode_from", "encode", "encoded_size", "from_json", "to_json"),
        "unknown_tagged_fields",
    }
)
"""Attributes of every message object, besides its fields."""


def attribute_name(name: str) -> str:
    """Convert to snake case, with a trailing underscore for Python keywords and attributes of every message class."""
    snake = snake_name(name)
    return f"{snake}_" if keyword.iskeyword(snake) or snake in OBJECT_ATTRIBUTES else snake
