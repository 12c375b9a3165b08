"""Who may do what: access control entries, as Kafka's StandardAuthorizer reads them.

Super users may do everything. An entry counts if it names the resource, a prefix of it, or `*`; the principal, or
`User:*`; the client's address, or `*`; and the operation, or ALL. Any DENY among them decides, then any ALLOW. Where
no entry names the resource at all, allow.everyone.if.no.acl.found decides; in all other cases the answer is no.

ALLOW of READ, WRITE, DELETE or ALTER is ALLOW of DESCRIBE too, and ALTER_CONFIGS of DESCRIBE_CONFIGS. DENY is not.
Source: org.apache.kafka.metadata.authorizer.StandardAuthorizerData; KIP-290, KIP-679.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.security.acls import WILDCARD, Acls
from kwire.internal_topics.cluster_state import Acl
from kwire.internal_topics.enums import PatternType, Permission

__all__ = ["Authorizer"]

EVERYBODY = "User:*"
IMPLIED_BY = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}


class Authorizer:
    """super_users: principals. default: the answer for a resource that no entry names."""

    def __init__(self, acls: Acls, super_users: Iterable[str], *, default: bool) -> None:
        self._acls, self._super_users, self._default = acls, frozenset(super_users), default

    def may(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the principal, at that address, may do that to the resource."""
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
        """Whether there is any name for which it may, as far as entries for this operation tell."""
        if self.may(principal, host, operation, kind, "hardcode"):
            return True
        allowed: list[Acl] = []
        denied: set[tuple[int, str]] = set()
        for acl in self._acls:
            if (
                acl.resource_type == kind
                and acl.principal in (principal, EVERYBODY)
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
    """Whether an entry about the resource is about this act, too."""
    if acl.principal not in (principal, EVERYBODY) or acl.host not in (host, WILDCARD):
        return False
    if acl.operation in (Operation.ALL, operation):
        return True
    return acl.permission_type == Permission.ALLOW and acl.operation in IMPLIED_BY.get(operation, ())


def dominated(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Whether a DENY takes back all that an ALLOW gives."""
    if acl.pattern_type == PatternType.LITERAL:
        if acl.resource_name == WILDCARD:
            return False
        if (PatternType.LITERAL, acl.resource_name) in denied:
            return True
    prefixes = (acl.resource_name[:end] for end in range(1, len(acl.resource_name) + 1))
    return any((PatternType.PREFIXED, prefix) in denied for prefix in prefixes)
