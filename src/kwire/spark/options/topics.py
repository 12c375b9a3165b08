"""The topics and partitions of a query: `assign`, `subscribe`, `subscribePattern`, or all. Standard library only.
Source: Spark's KafkaSourceProvider, ConsumerStrategy and JsonUtils (spark-sql-kafka-0-10); Kafka's Topic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.names import COORDINATOR_TOPICS, METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC

# Topics that Kafka itself writes. Kafka's clients do not count __cluster_metadata and __remote_log_metadata as internal
# (they cannot see the former), but a query of all topics should not read them.
INTERNAL_TOPICS = COORDINATOR_TOPICS | {METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC}

ASSIGN_EXAMPLE = '{"topicA":[0,1],"topicB":[0,1]}'


@dataclass(frozen=True, slots=True)
class Assign:
    """`assign`: exactly these partitions."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """`subscribe`: all partitions of exactly these topics."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Matching:
    """`subscribePattern`: all topics that match; with pattern None, all topics.

    pattern: in Python's syntax. include_internal: whether to match INTERNAL_TOPICS. in_part: whether a match of a part
    of the name suffices, as in Spark's Kafka source.
    """

    pattern: str | None
    include_internal: bool
    in_part: bool = False


Selection = Assign | Subscribe | Matching


def parse_assign(text: str) -> Assign:
    """Parse `{"topicA":[0,1]}`. Raises OptionError."""
    if not text.strip().startswith("{"):
        raise OptionError(f"No topicpartitions to assign as specified value for option 'assign' is '{text}'")
    expected = OptionError(f"Option 'assign': expected e.g. {ASSIGN_EXAMPLE}, got {text}")
    chosen: set[TopicPartition] = set()
    for topic, partitions in load_json_object(text, expected).items():
        if not isinstance(partitions, list):
            raise expected
        for partition in partitions:
            if type(partition) is not int or not 0 <= partition < 2**31:
                raise expected
            chosen.add((topic, partition))
    if not chosen:
        raise OptionError(f"No topicpartitions to assign as specified value for option 'assign' is '{text}'")
    return Assign(frozenset(chosen))


def parse_subscribe(text: str) -> Subscribe:
    """Parse a comma-separated list of topics. Raises OptionError for an empty list."""
    topics = frozenset(name.strip() for name in text.split(",")) - {""}
    if not topics:
        raise OptionError(f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'")
    return Subscribe(topics)


def parse_pattern(text: str, *, include_internal: bool) -> Matching:
    """Parse a Java regular expression. Raises OptionError if it is empty, invalid, or not supported."""
    if not text.strip():
        raise OptionError(f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{text}'")
    pattern = translate_java_regex(text.strip())
    try:
        re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(f"Option 'subscribePattern': {error} in '{text}'") from None
    return Matching(pattern, include_internal)


def select(selection: Selection, available: Collection[TopicPartition]) -> tuple[list[TopicPartition], list[str]]:
    """The selected partitions of `available`, and the names of missing topics and partitions; both sorted.

    Missing names have the form `topic` or `topic-partition`; patterns have none.
    """
    match selection:
        case Assign(partitions):
            existing = set(available)
            missing = [f"{topic}-{partition}" for topic, partition in sorted(partitions - existing)]
            return sorted(partitions & existing), missing
        case Subscribe(topics):
            return (
                sorted(key for key in available if key[0] in topics),
                sorted(topics - {topic for topic, _ in available}),
            )
        case Matching(pattern, include_internal, in_part):
            compiled = re.compile(pattern if pattern is not None else r"[\s\S]*", re.ASCII)
            matches = compiled.search if in_part else compiled.fullmatch
            return (
                sorted(
                    key
                    for key in available
                    if (include_internal or key[0] not in INTERNAL_TOPICS) and matches(key[0]) is not None
                ),
                [],
            )


def load_json_object(text: str, expected: OptionError) -> dict[str, Any]:
    """Parse a JSON object. Raises `expected` for anything else, and for duplicate names."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("duplicate name")
        return found

    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        raise expected from None
    if not isinstance(value, dict):
        raise expected
    return value


# Java's POSIX and java.lang.Character classes, for the characters of topic names (ASCII).
_NAMED_CLASSES = {
    "Lower": "a-z",
    "javaLowerCase": "a-z",
    "Upper": "A-Z",
    "javaUpperCase": "A-Z",
    "Alpha": "a-zA-Z",
    "L": "a-zA-Z",
    "IsAlphabetic": "a-zA-Z",
    "Digit": "0-9",
    "Nd": "0-9",
    "IsDigit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "XDigit": "0-9a-fA-F",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "ASCII": "\\x00-\\x7f",
}
_NAMED_GROUP = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_NAMED_REFERENCE = re.compile(r"\\k<([a-zA-Z][a-zA-Z0-9]*)>")
_PROPERTY = re.compile(r"\\[pP](?:\{(\w+)\}|(\w))")
_FLAGS = re.compile(r"\(\?([a-zA-Z-]*)[:)]")


def translate_java_regex(text: str) -> str:
    r"""Translate a java.util.regex pattern to Python's syntax, for topic names (ASCII letters, digits, `.`, `_`, `-`).

    Translates `\Q..\E`, `(?<name>..)`, `\k<name>`, `\z`, `\Z` and properties such as `\p{Alpha}`. Other common syntax
    is the same, possessive and atomic groups included. Raises OptionError for constructs that Python does not have:
    nested character classes, `&&`, flags `d`, `u` and `U`, `\G`, `\R`, `\X` and properties outside ASCII.
    """
    out: list[str] = []
    position, in_class = 0, False
    while position < len(text):
        if text.startswith(r"\Q", position):
            end = text.find(r"\E", position + 2)
            quoted = text[position + 2 : end if end >= 0 else len(text)]
            out.append(re.escape(quoted))
            position = end + 2 if end >= 0 else len(text)
            continue
        if text[position] == "\\":
            piece, position = _translate_escape(text, position, in_class)
            out.append(piece)
            continue
        if in_class and (text[position] == "[" or text.startswith("&&", position)):
            raise _unsupported(text, "nested character classes and &&")
        if text[position] == "[":
            in_class = True
            # "[]a]" and "[^]a]": a bracket after the opening one is an error in Java and a member in Python.
            if text.startswith(("[]", "[^]"), position):
                raise _unsupported(text, "an empty character class")
        elif text[position] == "]":
            in_class = False
        elif not in_class and (named := _NAMED_GROUP.match(text, position)):
            out.append(f"(?P<{named[1]}>")
            position = named.end()
            continue
        elif not in_class and (flags := _FLAGS.match(text, position)) and set(flags[1]) - set("imsx-"):
            raise _unsupported(text, f"the flags {flags[0]}")
        out.append(text[position])
        position += 1
    return "".join(out)


def _translate_escape(text: str, position: int, in_class: bool) -> tuple[str, int]:
    """Translate the escape at `position`; return Python's form and the position after it."""
    letter = text[position + 1 : position + 2]
    if letter in ("p", "P"):
        named = _PROPERTY.match(text, position)
        members = _NAMED_CLASSES.get(named[1] or named[2]) if named else None
        if named is None or members is None or (in_class and letter == "P"):
            raise _unsupported(text, named[0] if named else "this property")
        negation = "^" if letter == "P" else ""
        return (members if in_class else f"[{negation}{members}]"), named.end()
    if letter == "k":
        named = _NAMED_REFERENCE.match(text, position)
        if named is None:
            raise _unsupported(text, r"\k without a name")
        return f"(?P={named[1]})", named.end()
    if letter in ("G", "R", "X", "N", "c", "e", "h", "H", "V"):
        raise _unsupported(text, "\\" + letter)
    if letter == "z":
        return r"\Z", position + 2
    if letter == "Z":
        return r"(?=\n?\Z)", position + 2
    return text[position : position + 2], position + 2


def _unsupported(text: str, what: str) -> OptionError:
    return OptionError(f"Option 'subscribePattern': {what} in '{text}' cannot be translated from Java's syntax")
