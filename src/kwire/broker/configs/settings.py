"""Broker settings: Kafka's config names with underscores for dots, and Kafka's defaults.

Configs without an effect are not fields, but in `others`. Three defaults differ from Kafka:
group.initial.rebalance.delay.ms is 0, as in Kafka's quick start; sasl.enabled.mechanisms lists the supported mechanisms
instead of GSSAPI (it and OAUTHBEARER have to be enabled); queued.max.request.bytes has a limit instead of -1.

Settings without a counterpart in Kafka: users (SASL passwords by user name), sasl_oauthbearer_validator (a function in
place of a Java class), kerberos_keytab and kerberos_principal (options of a login module), ssl_certfile, ssl_keyfile
and ssl_cafile (PEM files in place of key stores), acls (short for the authorizer), and transaction_version,
share_version and eligible_leader_replicas_version (cluster features in Kafka).

Source: kafka.server.KafkaConfig and the classes it joins, 3.9.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kwire.broker.configs.secret_values import NO_SECRET, NO_USERS, Secret, Users
from kwire.broker.tokens import UNSECURED, TokenValidator
from kwire.errors import OptionError

__all__ = ["FIELDS", "TOPIC_DEFAULTS", "Settings", "parse_value", "render"]

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a broker. Units are in the names: _bytes, _ms, _minutes, _seconds."""

    node_id: int = 1
    listeners: str = "PLAINTEXT://127.0.0.1:0"
    advertised_listeners: str = ""
    listener_security_protocol_map: str = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    broker_rack: str = ""
    broker_session_timeout_ms: int = 9000
    # connections
    socket_request_max_bytes: int = 100 * 1024 * 1024
    queued_max_request_bytes: int = 256 * 1024 * 1024
    max_connections: int = MAX_INT32
    max_connections_per_ip: int = MAX_INT32
    connections_max_idle_ms: int = 600_000
    # topics
    auto_create_topics_enable: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    replica_selector_class: str = ""
    delete_topic_enable: bool = True
    # fetching
    fetch_max_bytes: int = 55 * 1024 * 1024
    max_incremental_fetch_session_cache_slots: int = 1000
    # logs: defaults of topic configs, see TOPIC_DEFAULTS
    message_max_bytes: int = 1_048_588
    max_decompressed_message_bytes: int = MAX_INT32 - 8
    compression_type: str = "producer"
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    log_segment_bytes: int = 1 << 30
    log_roll_ms: int = 7 * DAY_MS
    log_roll_jitter_ms: int = 0
    log_index_size_max_bytes: int = 10 << 20
    log_index_interval_bytes: int = 4096
    log_retention_ms: int = 7 * DAY_MS
    log_retention_bytes: int = -1
    log_cleanup_policy: str = "delete"
    log_cleaner_delete_retention_ms: int = DAY_MS
    log_cleaner_min_cleanable_ratio: float = 0.5
    log_cleaner_min_compaction_lag_ms: int = 0
    log_cleaner_max_compaction_lag_ms: int = MAX_INT64
    log_segment_delete_delay_ms: int = 60_000
    log_flush_interval_messages: int = MAX_INT64
    log_flush_interval_ms: int = MAX_INT64
    log_preallocate: bool = False
    log_message_format_version: str = "3.0-IV1"
    log_message_timestamp_type: str = "CreateTime"
    log_message_timestamp_before_max_ms: int = MAX_INT64
    log_message_timestamp_after_max_ms: int = 3_600_000
    log_message_downconversion_enable: bool = True
    producer_id_expiration_ms: int = DAY_MS
    # background tasks
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 128 << 20
    log_flush_scheduler_interval_ms: int = MAX_INT64
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_retention_check_interval_ms: int = 300_000
    # the metadata log
    metadata_log_segment_bytes: int = 1 << 30
    metadata_log_segment_ms: int = 7 * DAY_MS
    metadata_log_max_record_bytes_between_snapshots: int = 20 << 20
    metadata_log_max_snapshot_interval_ms: int = 3_600_000
    metadata_max_retention_bytes: int = 100 << 20
    metadata_max_retention_ms: int = 7 * DAY_MS
    # quotas
    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    controller_quota_window_num: int = 11
    controller_quota_window_size_seconds: int = 1
    # groups
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 100 << 20
    offsets_topic_compression_codec: int = 0
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offset_metadata_max_bytes: int = 4096
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 0
    group_max_size: int = MAX_INT32
    group_coordinator_rebalance_protocols: str = "classic,consumer"
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_consumer_min_heartbeat_interval_ms: int = 5000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_max_size: int = MAX_INT32
    group_consumer_assignors: str = "uniform,range"
    group_consumer_migration_policy: str = "bidirectional"
    group_share_assignors: str = "simple"
    group_share_session_timeout_ms: int = 45_000
    group_share_min_session_timeout_ms: int = 45_000
    group_share_max_session_timeout_ms: int = 60_000
    group_share_heartbeat_interval_ms: int = 5000
    group_share_min_heartbeat_interval_ms: int = 5000
    group_share_max_heartbeat_interval_ms: int = 15_000
    group_share_assignment_interval_ms: int = 1000
    group_share_min_assignment_interval_ms: int = 0
    group_share_max_assignment_interval_ms: int = 15_000
    group_share_record_lock_duration_ms: int = 30_000
    group_share_min_record_lock_duration_ms: int = 15_000
    group_share_max_record_lock_duration_ms: int = 60_000
    group_share_delivery_count_limit: int = 5
    group_share_min_delivery_count_limit: int = 2
    group_share_max_delivery_count_limit: int = 10
    group_share_partition_max_record_locks: int = 2000
    group_share_min_partition_max_record_locks: int = 100
    group_share_max_partition_max_record_locks: int = 4000
    group_share_max_size: int = 200
    group_share_max_share_sessions: int = 2000
    errors_deadletterqueue_auto_create_topics_enable: bool = False
    errors_deadletterqueue_topic_name_prefix: str = "dlq."
    share_coordinator_state_topic_num_partitions: int = 50
    share_coordinator_state_topic_replication_factor: int = 3
    share_coordinator_state_topic_min_isr: int = 2
    share_coordinator_state_topic_segment_bytes: int = 104_857_600
    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300_000
    share_coordinator_state_topic_prune_interval_ms: int = 300_000
    # security
    users: Users = NO_USERS
    sasl_enabled_mechanisms: str = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    sasl_oauthbearer_validator: TokenValidator = UNSECURED
    kerberos_keytab: str = ""
    kerberos_principal: str = ""
    sasl_kerberos_service_name: str = ""
    sasl_kerberos_principal_to_local_rules: str = "DEFAULT"
    sasl_server_max_receive_size: int = 512 * 1024
    connections_max_reauth_ms: int = 0
    connection_failed_authentication_delay_ms: int = 100
    delegation_token_secret_key: Secret = NO_SECRET
    delegation_token_max_lifetime_ms: int = 7 * DAY_MS
    delegation_token_expiry_time_ms: int = DAY_MS
    delegation_token_expiry_check_interval_ms: int = 3_600_000
    ssl_certfile: str = ""
    ssl_keyfile: str = ""
    ssl_key_password: Secret = NO_SECRET
    ssl_cafile: str = ""
    ssl_client_auth: str = "none"
    ssl_enabled_protocols: str = "TLSv1.2,TLSv1.3"
    acls: bool = False
    authorizer_class_name: str = ""
    super_users: str = ""
    allow_everyone_if_no_acl_found: bool = False
    # transactions
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_min_isr: int = 2
    transaction_state_log_segment_bytes: int = 100 << 20
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 7 * DAY_MS
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_partition_verification_enable: bool = True
    transaction_two_phase_commit_enable: bool = False
    unstable_api_versions_enable: bool = False
    transaction_version: int = 2
    share_version: int = 2
    eligible_leader_replicas_version: int = 0
    others: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False, repr=False)
    """Kafka's configs that are not among these, as they were given: most have no effect. They may be secret."""

    def replace(self, **values: Any) -> Settings:
        """Return a copy with other values."""
        return dataclasses.replace(self, **values)

    def topic_defaults(self) -> dict[str, str]:
        """Return the default topic configs: Kafka's dotted names to text."""
        return {topic: render(getattr(self, name)) for topic, name in TOPIC_DEFAULTS.items()}


FIELDS = {each.name.replace("_", "."): each for each in dataclasses.fields(Settings) if each.name != "others"}
"""The fields by Kafka's names."""


def parse_value(name: str, kind: type, value: object) -> Any:
    """Parse a value of a type, given typed or as text. Raises OptionError."""
    try:
        if kind is bool:
            if isinstance(value, bool):
                return value
            return {"true": True, "false": False}[str(value).strip().lower()]
        if kind is int and (isinstance(value, bool) or (isinstance(value, float) and value != int(value))):
            raise ValueError
        return kind(value.strip() if isinstance(value, str) else value)
    except (KeyError, ValueError, TypeError):
        expected = {bool: "true or false", int: "an integer", float: "a number"}.get(kind, "a string")
        raise OptionError(f"invalid value {value!r} for {name}: expected {expected}") from None


def render(value: object) -> str:
    """Format a value as Kafka does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


TOPIC_DEFAULTS = {
    "cleanup.policy": "log_cleanup_policy",
    "compression.type": "compression_type",
    "delete.retention.ms": "log_cleaner_delete_retention_ms",
    "file.delete.delay.ms": "log_segment_delete_delay_ms",
    "flush.messages": "log_flush_interval_messages",
    "flush.ms": "log_flush_interval_ms",
    "index.interval.bytes": "log_index_interval_bytes",
    "max.compaction.lag.ms": "log_cleaner_max_compaction_lag_ms",
    "max.decompressed.message.bytes": "max_decompressed_message_bytes",
    "max.message.bytes": "message_max_bytes",
    "message.downconversion.enable": "log_message_downconversion_enable",
    "message.format.version": "log_message_format_version",
    "message.timestamp.after.max.ms": "log_message_timestamp_after_max_ms",
    "message.timestamp.before.max.ms": "log_message_timestamp_before_max_ms",
    "message.timestamp.type": "log_message_timestamp_type",
    "min.cleanable.dirty.ratio": "log_cleaner_min_cleanable_ratio",
    "min.compaction.lag.ms": "log_cleaner_min_compaction_lag_ms",
    "min.insync.replicas": "min_insync_replicas",
    "preallocate": "log_preallocate",
    "retention.bytes": "log_retention_bytes",
    "retention.ms": "log_retention_ms",
    "segment.bytes": "log_segment_bytes",
    "segment.index.bytes": "log_index_size_max_bytes",
    "segment.jitter.ms": "log_roll_jitter_ms",
    "segment.ms": "log_roll_ms",
    "unclean.leader.election.enable": "unclean_leader_election_enable",
}
"""Topic configs and the broker setting that is the default of each. Source: ServerTopicConfigSynonyms."""
