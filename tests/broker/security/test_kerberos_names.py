"""Short names of Kerberos principals; the results are those of Kafka 4.4.0, which a test asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import kafka

from kwire.broker.security.kerberos_names import NoLocalName, local_name, parse_rules
from kwire.errors import OptionError

REALM = "EXAMPLE.COM"
PEER = Path(__file__).parent / "java" / "ShortNames.java"

# rules, principal, short name; None: the principal has none
NAMES = [
    ("DEFAULT", "alice@EXAMPLE.COM", "alice"),
    ("DEFAULT", "kafka/host.example.com@EXAMPLE.COM", "kafka"),
    ("DEFAULT", "alice@OTHER.COM", None),
    ("DEFAULT", "a/b/c@EXAMPLE.COM", None),
    ("RULE:[1:$1]", "alice@OTHER.COM", "alice"),
    ("RULE:[1:$1]", "alice/admin@OTHER.COM", None),
    ("RULE:[2:$1]", "alice/admin@OTHER.COM", "alice"),
    ("RULE:[2:$2.$1]", "alice/admin@OTHER.COM", "admin.alice"),
    ("RULE:[1:$1@$0]", "alice@OTHER.COM", None),
    ("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "alice@OTHER.COM", "alice"),
    ("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//,DEFAULT", "alice@EXAMPLE.COM", "alice"),
    ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "alice@OTHER.COM", None),
    ("DEFAULT,RULE:[1:$1]", "alice@OTHER.COM", "alice"),
    ("RULE:[1:$1]s/a/b/", "banana@EXAMPLE.COM", "bbnana"),
    ("RULE:[1:$1]s/a/b/g", "banana@EXAMPLE.COM", "bbnbnb"),
    ("RULE:[1:$1]s/(an)(a)/$2$1/", "banana@EXAMPLE.COM", "baanna"),
    ("RULE:[1:$1]s/a/\\$/", "banana@EXAMPLE.COM", "b$nana"),
    ("RULE:[1:$1]/U", "Alice@EXAMPLE.COM", "ALICE"),
    ("RULE:[1:$1]/L", "Alice@EXAMPLE.COM", "alice"),
    ("RULE:[1:$1]s/l/L/L", "Alice@EXAMPLE.COM", "alice"),
    ("RULE:[2:$1]s/^(.*)-x$/$1/", "svc-x/h@EXAMPLE.COM", "svc"),
    ("RULE:[1:x$1-$0]", "alice@EXAMPLE.COM", "xalice-EXAMPLE.COM"),
    ("RULE:[0:$0]", "alice@EXAMPLE.COM", None),
]
INVALID = [
    "default",
    "DEFAULT x",
    "RULE:[1:$1",
    "RULE:[x:$1]",
    "RULE:[:$1]",
    "RULE:[1:$2]",
    "RULE:[1:$]",
    "RULE:[1:$1]s/a/b",
    "RULE:[1:$1]s/(a/b/",
    "RULE:[1:$1]s/a/$1/",
    "RULE:[1:$1]s/a/${x}/",
    "RULE:[1:$1](a",
    "",
    " , ",
]


def short_name(rules: str, principal: str) -> str | None:
    try:
        return local_name(principal, parse_rules(rules), REALM)
    except NoLocalName:
        return None


@pytest.mark.parametrize(("rules", "principal", "name"), NAMES)
def test_the_first_rule_that_applies_names_a_principal(rules: str, principal: str, name: str | None) -> None:
    assert short_name(rules, principal) == name


@pytest.mark.parametrize("principal", ["alice", "a@b@EXAMPLE.COM", "/@EXAMPLE.COM", "@EXAMPLE.COM", ""])
def test_a_malformed_or_empty_name_has_no_short_name(principal: str) -> None:
    assert short_name("DEFAULT,RULE:[1:$1],RULE:[2:$1]", principal) is None


@pytest.mark.parametrize("rules", INVALID)
def test_invalid_rules_are_refused(rules: str) -> None:
    with pytest.raises(OptionError, match=r"broker config sasl\.kerberos\.principal\.to\.local\.rules"):
        parse_rules(rules)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.jvm
@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_kafka_gives_the_same_names(version: str) -> None:
    text = "".join(f"{rules}\t{principal}\n" for rules, principal, _ in NAMES)
    classes = kafka.compile_java(PEER, version=version)
    found = kafka.java("ShortNames", version=version, classes=classes, text=text).splitlines()
    assert [None if line.startswith("!") else line for line in found] == [name for _, _, name in NAMES]
