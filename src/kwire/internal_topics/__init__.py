"""Kafka's internal topics: their records as typed records, and the states that result from them.

typed_record         TypedRecord: a record with its decoded key and value, or with an error
cluster_state        `__cluster_metadata`: brokers, topics, configs, quotas, users, ACLs, tokens, features
groups_state         `__consumer_offsets`: groups, their members and committed offsets
transactions_state   `__transaction_state`: transactional ids
share_state          `__share_group_state`: delivery progress of share groups
cluster_values       what ClusterState consists of
names                the topics' names
placement            the partition of a group or transactional id

Each state has one `apply(record)`. Nothing here opens a file; `kwire.log.topics` reads the topics of a directory.
Import the modules, not this package: opening a log needs `names` but no state.
"""

from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

__all__ = ["GROUPS_TOPIC", "METADATA_TOPIC", "SHARE_STATE_TOPIC", "TRANSACTIONS_TOPIC"]
