"""Numbers in metadata records as the words Kafka's tools use; the number as text where there is none.

Source: ConfigResource.Type, ResourceType, PatternType, AclOperation, AclPermissionType, ScramMechanism,
SecurityProtocol, LeaderRecoveryState.
"""

from __future__ import annotations

__all__ = [
    "CONFIG_RESOURCES",
    "OPERATIONS",
    "PATTERNS",
    "PERMISSIONS",
    "RESOURCES",
    "SCRAM_MECHANISMS",
    "SECURITY_PROTOCOLS",
    "word",
]

CONFIG_RESOURCES = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
RESOURCES = {
    1: "ANY",
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
PATTERNS = {1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = dict(
    enumerate(
        (
            "ANY",
            "ALL",
            "READ",
            "WRITE",
            "CREATE",
            "DELETE",
            "ALTER",
            "DESCRIBE",
            "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "IDEMPOTENT_WRITE",
            "CREATE_TOKENS",
            "DESCRIBE_TOKENS",
            "TWO_PHASE_COMMIT",
        ),
        1,
    )
)
PERMISSIONS = {1: "ANY", 2: "DENY", 3: "ALLOW"}
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


def word(words: dict[int, str], number: int) -> str:
    """The word for a number."""
    return words.get(number, str(number))
