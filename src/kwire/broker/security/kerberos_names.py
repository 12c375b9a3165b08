"""Short names of Kerberos principals: sasl.kerberos.principal.to.local.rules.

    principal                   service[/host]@REALM
    DEFAULT                     the service, of principals of the default realm
    RULE:[n:format](match)s/from/to/g/L     for principals of n components: format with $0 (realm), $1, $2; the rule
                                applies if all of it matches; then the substitution, of every match with g; L and U

The first rule that applies counts. Without one, and with / or @ in its result, the login fails.
Source: org.apache.kafka.common.security.kerberos.KerberosName, KerberosRule, KerberosShortNamer 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kwire.errors import OptionError

__all__ = ["NoLocalName", "Rule", "local_name", "parse_rules"]

DEFAULT = -1
CONFIG = "sasl.kerberos.principal.to.local.rules"
PRINCIPAL = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
RULE = re.compile(
    r"DEFAULT|RULE:\[(?P<count>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?P<substitution>s/(?P<old>[^/]*)/(?P<new>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
PARAMETER = re.compile(r"\$(\d*)")
REFERENCE = re.compile(r"\\(.)|\$(\d)|([^\\$])", re.DOTALL)


class NoLocalName(Exception):
    """A principal without a short name."""


class Rule(NamedTuple):
    """A rule. components: how many a principal has to have; DEFAULT for that rule. old: None without a substitution."""

    components: int
    format: str = ""
    match: re.Pattern[str] | None = None
    old: re.Pattern[str] | None = None
    new: str = ""
    replaces_all: bool = False
    case: str = ""


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Parse the config. Raises OptionError."""
    rules = tuple(parse_rule(each.strip()) for each in text.split(",") if each.strip())
    if not rules:
        raise OptionError(f"broker config {CONFIG}: it is empty, so nobody could log in; remove it for DEFAULT")
    return rules


def parse_rule(text: str) -> Rule:
    """Parse a rule. Raises OptionError."""
    matched = RULE.fullmatch(text)
    if matched is None:
        raise OptionError(
            f"broker config {CONFIG}: invalid rule {text[:200]!r}: expected DEFAULT or RULE:[n:format]..."
        )
    if text == "DEFAULT":
        return Rule(DEFAULT)
    try:
        count = int(matched["count"])
        match = None if matched["match"] is None else re.compile(matched["match"], re.ASCII)
        old = None if matched["old"] is None else re.compile(matched["old"], re.ASCII)
    except (ValueError, re.error) as error:
        raise OptionError(f"broker config {CONFIG}: invalid rule {text[:200]!r}: {error}") from None
    rule = Rule(count, matched["format"], match, old, matched["new"] or "", bool(matched["all"]), matched["case"] or "")
    if any(not number or int(number) > count for number in PARAMETER.findall(rule.format)):
        raise OptionError(f"broker config {CONFIG}: invalid rule {text[:200]!r}: expected $0 to ${count} in its format")
    references = REFERENCE.findall(rule.new)
    is_whole = re.fullmatch(f"(?:{REFERENCE.pattern})*", rule.new, re.DOTALL) is not None
    if not is_whole or (old is not None and any(int(group or 0) > old.groups for _, group, _ in references)):
        raise OptionError(f"broker config {CONFIG}: invalid rule {text[:200]!r}: no such group in its pattern")
    return rule


def local_name(principal: str, rules: Sequence[Rule], default_realm: str) -> str:
    """Return the short name of a principal. Raises NoLocalName."""
    matched = PRINCIPAL.fullmatch(principal)
    if matched is None:
        raise NoLocalName(f"malformed Kerberos name {principal[:200]!r}")
    service, host, realm = matched.groups()
    parts = (realm, service) if host is None else (realm, service, host)
    for rule in rules:
        name = apply(rule, parts, default_realm)
        if name is not None:
            return name
    raise NoLocalName(f"no rule of {CONFIG} applies to {principal[:200]!r}")


def apply(rule: Rule, parts: Sequence[str], default_realm: str) -> str | None:
    """Return the result of a rule, None if it does not apply. parts: realm, then components. Raises NoLocalName."""
    if rule.components == DEFAULT:
        name = parts[1] if parts[0] == default_realm else None
    elif rule.components != len(parts) - 1:
        return None
    else:
        name = PARAMETER.sub(lambda match: parts[int(match[1])], rule.format)
        if rule.match is not None and rule.match.fullmatch(name) is None:
            return None
        if rule.old is not None:
            name = rule.old.sub(lambda match: expanded(rule.new, match), name, count=0 if rule.replaces_all else 1)
    if name is None:
        return None
    if not name:
        raise NoLocalName(f"the short name by a rule of {CONFIG} is empty")
    if "/" in name or "@" in name:
        raise NoLocalName(f"non-simple name {name[:200]!r} by a rule of {CONFIG}")
    return {"L": name.lower, "U": name.upper}.get(rule.case, name.__str__)()


def expanded(new: str, match: re.Match[str]) -> str:
    """Return a replacement with its references: $1 is a group, a backslash quotes."""
    return REFERENCE.sub(lambda each: each[1] or (match[int(each[2])] or "" if each[2] else each[3]), new)
