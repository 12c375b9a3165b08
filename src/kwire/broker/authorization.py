"""Operations and resource types of Kafka's ACLs.

Source: org.apache.kafka.common.acl.AclOperation, org.apache.kafka.common.resource.ResourceType.
"""

from __future__ import annotations

from kwire.internal_topics.enums import Operation, ResourceType

__all__ = ["CLUSTER", "NO_OPERATIONS", "Operation", "ResourceType", "operations_mask"]

CLUSTER = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""
NO_OPERATIONS = -(2**31)
"""Value of authorized_operations fields that were not requested."""


def operations_mask(operations: list[Operation]) -> int:
    """Encode operations as the bits of an int32."""
    return sum(1 << operation for operation in operations)
