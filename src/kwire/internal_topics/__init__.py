"""Kafka's internal topics: what their records mean, as typed records and as the state they add up to.

typed_record         TypedRecord: a record with its key and value decoded, or with what is wrong with it
cluster_state        `__cluster_metadata`: brokers, topics, configs, quotas, users, ACLs, tokens, features
groups_state         `__consumer_offsets`: groups, their members and committed offsets
transactions_state   `__transaction_state`: transactional ids
share_state          `__share_group_state`: what share groups have delivered
cluster_values       what ClusterState consists of
names                the topics' names

Each state has one `apply(record)`. Nothing here opens a file; `kwire.log.internal` reads the topics of a directory.
Import the modules: `names` is used where logs are opened, long before anybody needs a state.
"""

from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

__all__ = ["GROUPS_TOPIC", "METADATA_TOPIC", "SHARE_STATE_TOPIC", "TRANSACTIONS_TOPIC"]
