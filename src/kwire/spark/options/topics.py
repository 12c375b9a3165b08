"""Which topics and partitions a query reads: `assign`, `subscribe`, `subscribePattern`, or everything.

Standard library only: Spark plans a query in a Python process of its own, and a test runs this without Spark.
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

# Topics that Kafka itself writes. __cluster_metadata and __remote_log_metadata are not "internal" to Kafka's clients
# (the former is no topic to them at all), and nobody who asks for all topics means them.
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
    """`subscribePattern`, or no choice at all (pattern None): all topics that match.

    pattern: Python's form of the pattern. include_internal: whether INTERNAL_TOPICS take part. in_part: whether a match
    of a part of the name is enough, as it is for Spark's Kafka source.
    """

    pattern: str | None
    include_internal: bool
    in_part: bool = False


Selection = Assign | Subscribe | Matching


def parse_assign(text: str) -> Assign:
    """`{"topicA":[0,1]}` as an Assign; raises OptionError for anything else."""
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
    """A comma separated list of topics as a Subscribe; raises OptionError when it names none."""
    topics = frozenset(name.strip() for name in text.split(",")) - {""}
    if not topics:
        raise OptionError(f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'")
    return Subscribe(topics)


def parse_pattern(text: str, *, include_internal: bool) -> Matching:
    """A Java regular expression as a Matching; raises OptionError when it is empty, wrong, or not offered here."""
    if not text.strip():
        raise OptionError(f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{text}'")
    pattern = translate_java_regex(text.strip())
    try:
        re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(f"Option 'subscribePattern': {error} in '{text}'") from None
    return Matching(pattern, include_internal)


def select(selection: Selection, available: Collection[TopicPartition]) -> tuple[list[TopicPartition], list[str]]:
    """The partitions of `available` that the selection means, sorted, and what it names that is not there.

    The second list holds topic names and `topic-partition` names, sorted; empty for patterns, which name nothing.
    """
    match selection:
        case Assign(partitions):
            there = set(available)
            missing = [f"{topic}-{partition}" for topic, partition in sorted(partitions - there)]
            return sorted(partitions & there), missing
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
    """The JSON object in `text`; raises `expected` when it is not one, or names something twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("a name stands there twice")
        return found

    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        raise expected from None
    if not isinstance(value, dict):
        raise expected
    return value


# Java's POSIX and java.lang.Character classes, for the characters that a topic's name can have at all (ASCII).
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
    r"""A java.util.regex pattern in Python's syntax, for matching topic names (ASCII letters, digits, `.`, `_`, `-`).

    Translated: `\Q..\E`, `(?<name>..)`, `\k<name>`, `\z`, `\Z`, `\p{Alpha}` and kin. The rest of the common syntax is
    the same in both, possessive and atomic groups included. Raises OptionError for what Python has not: nested
    character classes and `&&`, flags `d` and `u` and `U`, `\G`, `\R`, `\X` and properties outside ASCII.
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
            raise _not_offered(text, "nested character classes and &&")
        if text[position] == "[":
            in_class = True
            # "[]a]" and "[^]a]": a bracket right behind the opening one is an error to Java and a member to Python.
            if text.startswith(("[]", "[^]"), position):
                raise _not_offered(text, "an empty character class")
        elif text[position] == "]":
            in_class = False
        elif not in_class and (named := _NAMED_GROUP.match(text, position)):
            out.append(f"(?P<{named[1]}>")
            position = named.end()
            continue
        elif not in_class and (flags := _FLAGS.match(text, position)) and set(flags[1]) - set("imsx-"):
            raise _not_offered(text, f"the flags {flags[0]}")
        out.append(text[position])
        position += 1
    return "".join(out)


def _translate_escape(text: str, position: int, in_class: bool) -> tuple[str, int]:
    """One escape of a Java pattern at `position`; returns Python's form and the position behind it."""
    letter = text[position + 1 : position + 2]
    if letter in ("p", "P"):
        named = _PROPERTY.match(text, position)
        members = _NAMED_CLASSES.get(named[1] or named[2]) if named else None
        if named is None or members is None or (in_class and letter == "P"):
            raise _not_offered(text, named[0] if named else "this property")
        negation = "^" if letter == "P" else ""
        return (members if in_class else f"[{negation}{members}]"), named.end()
    if letter == "k":
        named = _NAMED_REFERENCE.match(text, position)
        if named is None:
            raise _not_offered(text, r"\k without a name")
        return f"(?P={named[1]})", named.end()
    if letter in ("G", "R", "X", "N", "c", "e", "h", "H", "V"):
        raise _not_offered(text, "\\" + letter)
    if letter == "z":
        return r"\Z", position + 2
    if letter == "Z":
        return r"(?=\n?\Z)", position + 2
    return text[position : position + 2], position + 2


def _not_offered(text: str, what: str) -> OptionError:
    return OptionError(f"Option 'subscribePattern': {what} in '{text}' cannot be translated from Java's syntax")
