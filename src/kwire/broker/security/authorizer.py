"""Authorization by ACLs, with the rules of Kafka's StandardAuthorizer.

Super users may do everything. An ACL applies if it names the resource, a prefix of it, or `*`; the principal, or
`User:*`; the client's address, or `*`; and the operation, or ALL. Any DENY denies, otherwise any ALLOW allows. If no
ACL names the resource, allow.everyone.if.no.acl.found decides. Everything else is denied.

ALLOW of READ, WRITE, DELETE or ALTER implies ALLOW of DESCRIBE, and ALTER_CONFIGS implies DESCRIBE_CONFIGS. DENY
implies nothing.
Source: org.apache.kafka.metadata.authorizer.StandardAuthorizerData; KIP-290, KIP-679.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.security.acls import WILDCARD, Acls
from kwire.internal_topics.cluster_state import Acl
from kwire.internal_topics.enums import PatternType, Permission

__all__ = ["Authorizer"]

ANY_USER = "User:*"
IMPLIED_BY = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}


class Authorizer:
    """Decides by ACLs. super_users: principals. default: whether to allow when no ACL names a resource."""

    def __init__(self, acls: Acls, super_users: Iterable[str], *, default: bool) -> None:
        self._acls, self._super_users, self._default = acls, frozenset(super_users), default

    def may(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return whether a principal may perform an operation on a resource from an address."""
        if principal in self._super_users:
            return True
        is_allowed, is_known = False, False
        for acl in self._about(kind, name):
            is_known = True
            if applies(acl, principal, host, operation):
                if acl.permission_type == Permission.DENY:
                    return False
                is_allowed = True
        return is_allowed or (not is_known and self._default)

    def may_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Return whether a principal may perform an operation on any resource of a type."""
        if self.may(principal, host, operation, kind, "hardcode"):
            return True
        allowed: list[Acl] = []
        denied: set[tuple[int, str]] = set()
        for acl in self._acls:
            if (
                acl.resource_type == kind
                and acl.principal in (principal, ANY_USER)
                and acl.host in (host, WILDCARD)
                and acl.operation in (operation, Operation.ALL)
            ):
                if acl.permission_type == Permission.ALLOW:
                    allowed.append(acl)
                else:
                    denied.add((acl.pattern_type, acl.resource_name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(not dominated(acl, denied) for acl in allowed)

    def _about(self, kind: ResourceType, name: str) -> Iterator[Acl]:
        acls = self._acls
        yield from acls.on(kind, PatternType.LITERAL, name)
        if name != WILDCARD:
            yield from acls.on(kind, PatternType.LITERAL, WILDCARD)
        for end in range(1, len(name) + 1):
            yield from acls.on(kind, PatternType.PREFIXED, name[:end])


def applies(acl: Acl, principal: str, host: str, operation: Operation) -> bool:
    """Return whether an ACL of a resource applies to an operation."""
    if acl.principal not in (principal, ANY_USER) or acl.host not in (host, WILDCARD):
        return False
    if acl.operation in (Operation.ALL, operation):
        return True
    return acl.permission_type == Permission.ALLOW and acl.operation in IMPLIED_BY.get(operation, ())


def dominated(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Return whether DENY ACLs cover all resources of an ALLOW."""
    if acl.pattern_type == PatternType.LITERAL:
        if acl.resource_name == WILDCARD:
            return False
        if (PatternType.LITERAL, acl.resource_name) in denied:
            return True
    prefixes = (acl.resource_name[:end] for end in range(1, len(acl.resource_name) + 1))
    return any((PatternType.PREFIXED, prefix) in denied for prefix in prefixes)
