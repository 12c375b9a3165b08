"""Text of .proto files, in the spelling that proto-schema-parser reads.

protoc accepts more: comments between any two tokens, integers in hexadecimal and octal, and the words that came with
editions.
"""

from __future__ import annotations

import re

__all__ = ["simplify"]

# An unclosed string or comment is one up to the end: the parser names it, and each byte is read once.
STRING = r"""(?P<string> "(?:[^"\\\n]|\\.)*+(?:"|\\?(?=\n)|\\?\Z) | '(?:[^'\\\n]|\\.)*+(?:'|\\?(?=\n)|\\?\Z) )"""
TOKEN = re.compile(
    rf"""
    {STRING}
  | (?P<blank> //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z) | [\v\f]+ )
  | (?<![\w.]) 0 (?: [xX](?P<hexadecimal>[0-9a-fA-F]+) | (?P<octal>[0-7]+) ) (?![\w.])
    """,
    re.VERBOSE | re.DOTALL,
)
NAME = r"[A-Za-z_]\w*"
EDITION_WORDS = re.compile(
    rf"""
    {STRING}
  | \b import \s+ option \s+ (?: "[^"\n]*" | '[^'\n]*' ) \s* ;
  | \b reserved \s+ {NAME} (?: \s*,\s* {NAME} )* \s* ;
  | \b (?:export|local) \s+ (?= (?:message|enum) \s+ {NAME} \s* \{{ )
    """,
    re.VERBOSE,
)


def simplify(text: str) -> str:
    """Return a .proto file without comments, reserved names, visibility and imports of options, with decimals only.

    Lines and columns remain the same: spaces replace what is removed.
    """
    return EDITION_WORDS.sub(_blank, TOKEN.sub(_respell, text))


def _respell(token: re.Match[str]) -> str:
    written, hexadecimal, octal = token.group(0), token["hexadecimal"], token["octal"]
    if hexadecimal is None and octal is None:
        return _blank(token)
    decimal = str(int(hexadecimal, 16) if octal is None else int(octal, 8))
    # An integer with more digits as a decimal is too large for a number of a field or of an enum.
    return decimal.ljust(len(written)) if len(decimal) <= len(written) else written


def _blank(token: re.Match[str]) -> str:
    return token.group(0) if token["string"] else re.sub(r"[^\n]", " ", token.group(0))
