"""Why real Kafka's releases differ in a check: a sentence for each difference."""

from __future__ import annotations

from fnmatch import fnmatchcase

__all__ = ["difference"]

FOR_LIBRDKAFKA = (
    "Kafka 4 lists Produce 0 to 2 because old releases of librdkafka look for them, and closes a connection that uses "
    "one (KIP-896)"
)
VERIFIED = (
    "Since Kafka 3.9 at the latest, the leader asks the transaction coordinator whether the partition is part of the "
    "transaction (KIP-890)"
)
OFF_BY_DEFAULT = (
    "Kafka 3.9 has the consumer protocol only where a config turns it on, and the recorded broker had the defaults"
)
ABORTED_LIST = "The aborted transactions of a partition with an error are null in Kafka 2.8, and an empty list later"

DIFFERENCES = (
    ("RANGE-*", "Releases add versions of APIs, and Kafka 4 removed old ones (KIP-896)"),
    ("VERSION-008", "Each release has its own features; a broker with ZooKeeper had none in 2.8"),
    ("PRODUCE-V0[0-2]-*", FOR_LIBRDKAFKA),
    ("ERROR-PRODUCE-0[0-2]", FOR_LIBRDKAFKA),
    ("PRODUCE-027", VERIFIED),
    ("TXN-011", VERIFIED),
    (
        "LIST-OFFSETS-007",
        "Kafka 2.8 takes other negative timestamps for times before all records; later ones refuse them",
    ),
    ("CONSUMER-*", OFF_BY_DEFAULT),
    ("*-CONSUMER-GROUP-*", OFF_BY_DEFAULT),
    ("*-FETCH-*", ABORTED_LIST),
    ("ERROR-OFFSET-FETCH-00", "Version 0 reads offsets from ZooKeeper, which a KRaft broker does not have"),
    (
        "*-ALTER-PARTITION-REASSIGNMENTS-00",
        "The controller of KRaft looks for the topic first; with ZooKeeper, for the reassignment",
    ),
    ("ADMIN-007", "Kafka 2.8 with ZooKeeper has INVALID_REQUEST for what KRaft calls INVALID_CONFIG"),
    ("DENIED-PRODUCE-0[0-2]", FOR_LIBRDKAFKA),
    (
        "DENIED-OFFSET-FETCH-*",
        "Kafka 3.9 loses the error of a group in version 1 (KAFKA-19246)",
    ),
    (
        "DENIED-CREATE-TOPICS-*",
        "Kafka 2.8 says that the configs of a topic may not be seen even if the topic itself may not",
    ),
    ("DENIED-DESCRIBE-USER-SCRAM-*", "Since KRaft, the error is in a result without a user too"),
    ("USER-005", "With ZooKeeper, a user may be altered twice in a request, for different mechanisms"),
    ("ACL-006", "AclAuthorizer, of ZooKeeper, fails at a principal without a type; KRaft checks it first"),
    ("QUOTA-010", "Kafka 2.8 fails at an unknown type of match; later ones check it first"),
    (
        "TELEMETRY-006",
        "Kafka 3.9 throttles a client that asks again because its subscription has changed; 4.x does not",
    ),
    ("TELEMETRY-007", "Kafka 3.9 fails at an interval that is not a number; 4.x checks it first"),
    ("*-UPDATE-FEATURES-*", "Kafka 4 reports the first error for the whole request; 2.8 had another error for it"),
)
"""(pattern of ids, sentence); the last pattern that matches applies."""


def difference(check_id: str) -> str | None:
    """Return why releases differ in a check; None if no difference is known."""
    matches = [sentence for pattern, sentence in DIFFERENCES if fnmatchcase(check_id, pattern)]
    return matches[-1] if matches else None
