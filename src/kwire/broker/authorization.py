"""What may be done to what: the words of Kafka's access control, as numbers on the wire.

Source: org.apache.kafka.common.acl.AclOperation, org.apache.kafka.common.resource.ResourceType.
"""

from __future__ import annotations

from kwire.internal_topics.enums import Operation, ResourceType

__all__ = ["CLUSTER", "NO_OPERATIONS", "Operation", "ResourceType", "operations_mask"]

CLUSTER = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""
NO_OPERATIONS = -(2**31)
"""What a response has where it was not asked for the operations allowed."""


def operations_mask(operations: list[Operation]) -> int:
    """Operations as the bits of an int32."""
    return sum(1 << operation for operation in operations)
