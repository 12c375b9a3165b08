"""ACLs of the cluster, and filters that find them.

Each ACL is a record of the metadata log with an id (AccessControlEntryRecord, RemoveAccessControlEntryRecord). Adding
an existing one adds nothing. Source: org.apache.kafka.controller.AclControlManager,
org.apache.kafka.common.resource.ResourcePatternFilter, acl.AccessControlEntryFilter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.identifiers import new_uuid
from kwire.internal_topics.cluster_state import Acl, ClusterState
from kwire.internal_topics.enums import PatternType, Permission
from kwire.messages import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.metadata_log import Commit

__all__ = ["WILDCARD", "Acl", "AclFilter", "Acls", "PatternType", "Permission"]

WILDCARD = "*"
RESOURCE_TYPES, OPERATIONS = frozenset(ResourceType), frozenset(Operation)


class AclFilter(NamedTuple):
    """Conditions on ACLs; None and ANY match every value."""

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission_type: int = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL matches all fields of the filter."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission_type in (Permission.ANY, acl.permission_type)
        )

    def _matches_name(self, acl: Acl) -> bool:
        """Compare the resource name. MATCH finds all patterns that apply to a resource of that name."""
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return name == acl.resource_name
        if acl.pattern_type == PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, WILDCARD)

    def check(self) -> None:
        """Check the numbers of the filter. Raises BrokerError: INVALID_REQUEST."""
        for value, values, what in (
            (self.resource_type, RESOURCE_TYPES, "patternFilter"),
            (self.pattern_type, frozenset(PatternType), "patternFilter"),
            (self.operation, OPERATIONS, "entryFilter"),
            (self.permission_type, frozenset(Permission), "entryFilter"),
        ):
            if value not in values or value == 0:
                raise refusal(ErrorCode.INVALID_REQUEST, f"Unknown {what}.")


class Acls:
    """The ACLs of a cluster, with an index by resource."""

    def __init__(self, cluster: ClusterState, commit: Commit) -> None:
        self._acls, self._commit = cluster.acls, commit
        self._by_resource: dict[tuple[int, int, str], list[Acl]] | None = None
        cluster.observe("AccessControlEntryRecord", self._drop_index)
        cluster.observe("RemoveAccessControlEntryRecord", self._drop_index)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls.values())

    def on(self, resource_type: int, pattern_type: int, name: str) -> list[Acl]:
        """Return the ACLs with exactly this resource pattern."""
        if self._by_resource is None:
            self._by_resource = {}
            for acl in self:
                pattern = (acl.resource_type, acl.pattern_type, acl.resource_name)
                self._by_resource.setdefault(pattern, []).append(acl)
        return self._by_resource.get((resource_type, pattern_type, name), [])

    def add(self, acl: Acl) -> None:
        """Create an ACL unless an equal one exists. Raises BrokerError for an invalid one."""
        check(acl)
        if acl not in self._acls.values():
            self._commit([(AccessControlEntryRecord(id=new_uuid(), **acl._asdict()), 0)])

    def remove(self, filter_: AclFilter) -> list[Acl]:
        """Remove the ACLs that match a filter and return them. Raises BrokerError for an invalid filter."""
        filter_.check()
        matching = {acl_id: acl for acl_id, acl in self._acls.items() if filter_.matches(acl)}
        if matching:
            self._commit([(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in matching])
        return list(matching.values())

    def _drop_index(self, record: object) -> None:
        self._by_resource = None


def check(acl: Acl) -> None:
    """Check an ACL. Raises BrokerError: INVALID_REQUEST."""
    what = None
    if acl.resource_type not in RESOURCE_TYPES or acl.resource_type <= ResourceType.ANY:
        what = f"Invalid resourceType {acl.resource_type}"
    elif acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        what = f"Invalid patternType {acl.pattern_type}"
    elif acl.operation not in OPERATIONS or acl.operation <= Operation.ANY:
        what = f"Invalid operation {acl.operation}"
    elif acl.permission_type not in (Permission.DENY, Permission.ALLOW):
        what = f"Invalid permissionType {acl.permission_type}"
    elif not acl.resource_name:
        what = "Invalid empty resource name"
    elif acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER:
        what = f"The only valid name for the CLUSTER resource is {CLUSTER}"
    elif ":" not in acl.principal:
        what = (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type "
            + ("from the principal name)")
        )
    if what is not None:
        raise refusal(ErrorCode.INVALID_REQUEST, what)
