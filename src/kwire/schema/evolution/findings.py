"""Findings of a comparison, and its rules.

A Violation breaks a peer with the other definition, or stored data. A Note is an allowed change to review, such as a
rename or a newly reserved tag.
The ids are from docs/spec/messages.md, part 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

RULES: Final = {
    "V-01": "the api key of a message never changes",
    "V-02": "the kind of a message never changes",
    "V-03": "a flexible version stays flexible",
    "V-04": "the highest version never decreases",
    "V-05": "dropped versions are not restored",
    "V-06": "a field's ranges overlap the message's valid versions",
    "V-07": "tagged versions lie inside the flexible versions",
    "V-10": "a message keeps its name",
    "V-11": "Kafka compares types as text, names of structs included",
    "V-12": "a field stays in the released versions that have it (highest version)",
    "V-13": "a field's lowest version never changes",
    "V-14": "a field stays nullable in the released versions where it is (highest nullable version)",
    "V-15": "a field's lowest nullable version never changes in released versions",
    "V-16": "a field keeps the compact form in released versions",
    "V-17": "Kafka compares defaults as text",
    "V-20": "a new field may be added to a new version",
    "V-21": "a new field that is not tagged is never added to a released version",
    "V-22": "a field may be removed with the last version that has it",
    "V-23": "a field is never removed while a version that has it is valid",
    "V-24": "Kafka compares fields by position",
    "V-25": "a field may be renamed in place",
    "V-26": "attributes that are not on the wire may change",
    "V-27": "Kafka rejects a new tagged field in an existing version",
    "V-28": "an inline struct may become a common one, and the reverse",
    "V-40": "a tagged field may be added to a released version that is flexible",
    "V-41": "a tagged field is never added to a version that is not flexible",
    "V-42": "a released version never becomes flexible",
    "V-43": "a tag is never reused for another field",
    "V-44": "the format of a tagged field never changes",
    "V-45": "a field may become tagged in a new version",
    "V-46": "a tagged field may be removed; its tag stays reserved",
    "V-47": "a released version never changes",
    "V-48": "fields keep their order",
    "V-49": "a new version may have new fields anywhere",
    "V-50": "a default never changes",
    "V-51": "the type of a field never changes",
    "V-52": "a new version may lack a field",
    "V-53": "old versions are dropped only by a KIP",
    "V-54": "a new version may equal the previous one",
    "V-55": "an integer's encoding changes in new versions only",
    "V-56": "a request and its response have the same versions",
    "T-19": "Kafka's checker, up to 3.9, rejects two messages that both have a struct of one name",
}
"""Rules by id. Only `like_kafka` reports V-11, V-17, V-24, V-27 and T-19."""


Kind = Literal["error", "violation", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A statement about a change.

    kind: "violation", "note", or "error". rule: a key of RULES; for an error, the rule of the definition language.
    where: message, or message and fields: `MetadataResponse.Topics.Name`.
    message: what changed. advice: the remedy; may be empty.
    versions: the affected released versions as ranges ("0-2, 5"); empty if it does not concern single versions.
    """

    kind: ClassVar[Kind]
    rule: str
    where: str
    message: str
    advice: str = ""
    versions: str = ""

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.where}: {self.message}{advice} [{self.rule}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation(Finding):
    """An incompatible change."""

    kind: ClassVar[Kind] = "violation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Finding):
    """An allowed change to review."""

    kind: ClassVar[Kind] = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid(Finding):
    """An error of a definition, which cannot be compared."""

    kind: ClassVar[Kind] = "error"
