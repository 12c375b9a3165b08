"""Java's regular expressions in Python's syntax, for option `subscribePattern`. Standard library only.

Source: java.util.regex.Pattern; Kafka's Topic (the characters of topic names).
"""

from __future__ import annotations

import re

from kwire.errors import OptionError

__all__ = ["translate_java_regex"]

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
