"""ACLs: literal, prefixed and wildcard; allow and deny; implied operations."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.security import AclFilter, Acls, Authorizer
from kwire.errors import BrokerError
from kwire.internal_topics.cluster_state import Acl, ClusterState
from kwire.internal_topics.enums import PatternType, Permission
from kwire.internal_topics.metadata_records import metadata_record
from kwire.protocol.error_codes import ErrorCode

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
HOST = "10.0.0.1"


def acl(operation: Operation = READ, name: str = "orders", **values: Any) -> Acl:
    """Return an ACL that allows alice to read the topic orders, with some fields replaced."""
    return Acl(
        **{
            "resource_type": TOPIC,
            "resource_name": name,
            "pattern_type": LITERAL,
            "principal": "User:alice",
            "host": "*",
            "operation": operation,
            "permission_type": Permission.ALLOW,
            **values,
        }
    )


def acls(*entries: Acl) -> Acls:
    cluster = ClusterState()
    made = Acls(cluster, lambda records: [cluster.apply(metadata_record(*each)) for each in records])
    for entry in entries:
        made.add(entry)
    return made


def may(
    *entries: Acl,
    operation: Operation = READ,
    name: str = "orders",
    kind: ResourceType = TOPIC,
    principal: str = "User:alice",
    default: bool = False,
) -> bool:
    authorizer = Authorizer(acls(*entries), ["User:root"], default=default)
    return authorizer.may(principal, HOST, operation, kind, name)


DENY = {"permission_type": Permission.DENY}


def test_without_an_acl_the_default_applies() -> None:
    assert not may()
    assert may(default=True)
    assert not may(acl(principal="User:bob"), default=True)  # one entry about the resource, whoever it is for
    assert not may(acl(name="ord", pattern_type=PREFIXED, principal="User:bob"), default=True)
    assert not may(acl(name="*", principal="User:bob"), default=True)
    assert may(acl(name="payments"), default=True)


def test_super_users_may_do_everything() -> None:
    assert may(acl(**DENY, principal="User:*", operation=Operation.ALL), principal="User:root")


@pytest.mark.parametrize(
    ("entry", "allowed"),
    [
        (acl(), True),
        (acl(name="order"), False),
        (acl(name="orders2"), False),
        (acl(name="order", pattern_type=PREFIXED), True),
        (acl(name="orders", pattern_type=PREFIXED), True),
        (acl(name="orders2", pattern_type=PREFIXED), False),
        (acl(name="*"), True),
        (acl(name="*", pattern_type=PREFIXED), False),
        (acl(resource_type=GROUP), False),
        (acl(principal="User:*"), True),
        (acl(principal="Group:alice"), False),
        (acl(host=HOST), True),
        (acl(host="10.0.0.2"), False),
        (acl(WRITE), False),
        (acl(Operation.ALL), True),
        (acl(DESCRIBE), False),
    ],
)
def test_an_acl_applies_to_matching_requests(entry: Acl, allowed: bool) -> None:
    assert may(entry) is allowed


@pytest.mark.parametrize("deny", [acl(**DENY), acl(name="o", pattern_type=PREFIXED, **DENY), acl(name="*", **DENY)])
@pytest.mark.parametrize("allow", [acl(), acl(name="or", pattern_type=PREFIXED), acl(name="*"), acl(Operation.ALL)])
def test_deny_takes_precedence_over_allow(deny: Acl, allow: Acl) -> None:
    assert not may(deny, allow)
    assert not may(allow, deny, default=True)
    assert may(allow, deny._replace(operation=WRITE))


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER, DESCRIBE])
def test_other_operations_imply_describe(operation: Operation) -> None:
    assert may(acl(operation), operation=DESCRIBE)
    both = (acl(operation, **DENY), acl(DESCRIBE))
    assert may(*both, operation=DESCRIBE) is (operation != DESCRIBE)  # a deny implies nothing


def test_only_some_operations_imply_describe() -> None:
    for operation in (Operation.CREATE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS, Operation.CLUSTER_ACTION):
        assert not may(acl(operation), operation=DESCRIBE)
    assert may(acl(Operation.ALTER_CONFIGS), operation=Operation.DESCRIBE_CONFIGS)
    assert not may(acl(Operation.ALTER), operation=Operation.DESCRIBE_CONFIGS)


@pytest.mark.parametrize(
    ("entries", "allowed"),
    [
        ([], False),
        ([acl(WRITE)], True),
        ([acl(READ)], False),
        ([acl(Operation.ALL, "*")], True),
        ([acl(WRITE, resource_type=GROUP)], False),
        ([acl(WRITE), acl(WRITE, **DENY)], False),
        ([acl(WRITE), acl(WRITE, "ord", pattern_type=PREFIXED, **DENY)], False),
        ([acl(WRITE), acl(WRITE, "*", **DENY)], False),
        ([acl(WRITE, "ord", pattern_type=PREFIXED), acl(WRITE, **DENY)], True),
        ([acl(WRITE, "ord", pattern_type=PREFIXED), acl(WRITE, "o", pattern_type=PREFIXED, **DENY)], False),
        ([acl(WRITE), acl(READ, "*", **DENY)], True),
        ([acl(WRITE, host="10.0.0.2")], False),
    ],
)
def test_authorize_by_resource_type_finds_any_writable_topic(entries: list[Acl], allowed: bool) -> None:
    authorizer = Authorizer(acls(*entries), [], default=False)
    assert authorizer.may_on_any("User:alice", HOST, WRITE, TOPIC) is allowed


def test_a_duplicate_acl_is_stored_once_and_can_be_removed() -> None:
    made = acls(acl(), acl(), acl(WRITE))
    assert len(list(made)) == 2
    assert made.remove(AclFilter(operation=READ)) == [acl()]
    assert list(made) == [acl(WRITE)]
    assert made.remove(AclFilter(operation=READ)) == []


PREFIX = acl(name="ord", pattern_type=PREFIXED)
ALL = acl(name="*")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), [acl(), PREFIX, ALL]),
        (AclFilter(resource_name="orders"), [acl()]),
        (AclFilter(resource_name="orders", pattern_type=PatternType.MATCH), [acl(), PREFIX, ALL]),
        (AclFilter(resource_name="ordinary", pattern_type=PatternType.MATCH), [PREFIX, ALL]),
        (AclFilter(resource_name="ord", pattern_type=PREFIXED), [PREFIX]),
        (AclFilter(pattern_type=LITERAL), [acl(), ALL]),
        (AclFilter(principal="User:bob"), []),
        (AclFilter(host="*", permission_type=Permission.ALLOW), [acl(), PREFIX, ALL]),
        (AclFilter(resource_type=GROUP), []),
    ],
)
def test_acl_filters_match_bindings(wanted: AclFilter, found: list[Acl]) -> None:
    assert list(filter(wanted.matches, acls(acl(), PREFIX, ALL))) == found


@pytest.mark.parametrize(
    "wrong",
    [
        acl(resource_type=ResourceType.ANY),
        acl(resource_type=99),
        acl(pattern_type=PatternType.MATCH),
        acl(Operation.ANY),
        acl(permission_type=Permission.ANY),
        acl(name=""),
        acl(resource_type=ResourceType.CLUSTER),
        acl(principal="alice"),
    ],
)
def test_invalid_acls_are_rejected(wrong: Acl) -> None:
    with pytest.raises(BrokerError) as caught:
        acls(wrong)
    assert caught.value.code == ErrorCode.INVALID_REQUEST
    assert list(acls(acl(resource_type=ResourceType.CLUSTER, name=CLUSTER)))


@pytest.mark.parametrize("name", ["resource_type", "pattern_type", "operation", "permission_type"])
@pytest.mark.parametrize("value", [0, 99])
def test_invalid_filters_are_rejected(name: str, value: int) -> None:
    with pytest.raises(BrokerError):
        acls().remove(AclFilter()._replace(**{name: value}))
