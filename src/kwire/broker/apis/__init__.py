"""The APIs that the broker serves: one handler module each, listed in SERVED. Common steps are in `steps`.

A handler module defines

    handle(node, context, request)           returns the response, or an awaitable of it if it has to wait
    error_response(request, code, message)   optional: the response to a request that fails as a whole, for APIs whose
                                             response has no top-level error_code

A handler raises BrokerError to fail the whole request. The module's docstring names the API, its key and its versions,
and says what each version added and how the broker behaves; docs/apis.md is generated from it.

To serve a new version, handle its fields in the module, extend the docstring and raise the version in SERVED.
tests/broker/test_apis.py checks that the table, the modules and their docstrings agree.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from kwire.broker.context import RequestContext
    from kwire.broker.node import Node
    from kwire.broker.responses import Response
    from kwire.messages.base import Message

__all__ = ["SERVED", "Api", "Handler", "handler", "served"]


class Api(NamedTuple):
    """A row of SERVED: the handler module and the range of versions it serves, both ends included."""

    module: str
    lowest: int
    highest: int


class Handler(Protocol):
    """A handler module as dispatch calls it; its own signature names the request class."""

    def handle(self, node: Node, context: RequestContext, request: Message | None) -> Response | Awaitable[Response]:
        """Handle a request. Raises BrokerError to fail it as a whole."""


SERVED: Mapping[int, Api] = {
    0: Api("produce", 0, 13),
    1: Api("fetch", 0, 18),
    2: Api("list_offsets", 0, 11),
    3: Api("metadata", 0, 13),
    8: Api("offset_commit", 0, 10),
    9: Api("offset_fetch", 0, 10),
    10: Api("find_coordinator", 0, 6),
    11: Api("join_group", 0, 9),
    12: Api("heartbeat", 0, 4),
    13: Api("leave_group", 0, 5),
    14: Api("sync_group", 0, 5),
    15: Api("describe_groups", 0, 6),
    16: Api("list_groups", 0, 5),
    17: Api("sasl_handshake", 0, 1),
    18: Api("api_versions", 0, 5),
    19: Api("create_topics", 0, 7),
    20: Api("delete_topics", 0, 6),
    21: Api("delete_records", 0, 2),
    22: Api("init_producer_id", 0, 5),
    23: Api("offset_for_leader_epoch", 0, 4),
    24: Api("add_partitions_to_txn", 0, 5),
    25: Api("add_offsets_to_txn", 0, 4),
    26: Api("end_txn", 0, 5),
    27: Api("write_txn_markers", 0, 2),
    28: Api("txn_offset_commit", 0, 6),
    29: Api("describe_acls", 0, 3),
    30: Api("create_acls", 0, 3),
    31: Api("delete_acls", 0, 3),
    32: Api("describe_configs", 0, 4),
    33: Api("alter_configs", 0, 2),
    34: Api("alter_replica_log_dirs", 0, 2),
    35: Api("describe_log_dirs", 0, 5),
    36: Api("sasl_authenticate", 0, 2),
    37: Api("create_partitions", 0, 3),
    38: Api("create_delegation_token", 0, 3),
    39: Api("renew_delegation_token", 0, 2),
    40: Api("expire_delegation_token", 0, 2),
    41: Api("describe_delegation_token", 0, 3),
    42: Api("delete_groups", 0, 3),
    43: Api("elect_leaders", 0, 2),
    44: Api("incremental_alter_configs", 0, 1),
    45: Api("alter_partition_reassignments", 0, 1),
    46: Api("list_partition_reassignments", 0, 0),
    47: Api("offset_delete", 0, 0),
    48: Api("describe_client_quotas", 0, 1),
    49: Api("alter_client_quotas", 0, 1),
    50: Api("describe_user_scram_credentials", 0, 0),
    51: Api("alter_user_scram_credentials", 0, 0),
    55: Api("describe_quorum", 0, 2),
    57: Api("update_features", 0, 2),
    60: Api("describe_cluster", 0, 2),
    61: Api("describe_producers", 0, 0),
    64: Api("unregister_broker", 0, 0),
    65: Api("describe_transactions", 0, 0),
    66: Api("list_transactions", 0, 2),
    68: Api("consumer_group_heartbeat", 0, 1),
    69: Api("consumer_group_describe", 0, 1),
    71: Api("get_telemetry_subscriptions", 0, 0),
    72: Api("push_telemetry", 0, 0),
    74: Api("list_config_resources", 0, 1),
    75: Api("describe_topic_partitions", 0, 0),
    76: Api("share_group_heartbeat", 1, 1),
    77: Api("share_group_describe", 1, 1),
    78: Api("share_fetch", 1, 2),
    79: Api("share_acknowledge", 1, 2),
    80: Api("add_raft_voter", 0, 1),
    81: Api("remove_raft_voter", 0, 0),
    83: Api("initialize_share_group_state", 0, 0),
    84: Api("read_share_group_state", 0, 0),
    85: Api("write_share_group_state", 0, 1),
    86: Api("delete_share_group_state", 0, 0),
    87: Api("read_share_group_state_summary", 0, 1),
    88: Api("streams_group_heartbeat", 0, 1),
    89: Api("streams_group_describe", 0, 1),
    90: Api("describe_share_group_offsets", 0, 1),
    91: Api("alter_share_group_offsets", 0, 0),
    92: Api("delete_share_group_offsets", 0, 0),
    93: Api("streams_group_topology_description_update", 0, 0),
    94: Api("unregister_controller", 0, 0),
}
"""Handler module and versions by API key, of a broker with default settings."""
UNSTABLE: Mapping[int, Api] = {22: Api("init_producer_id", 0, 6)}
"""APIs whose newest version Kafka 4.4 calls unstable: only unstable.api.versions.enable makes it served."""


@functools.cache
def served(unstable: bool) -> Mapping[int, Api]:
    """Return handler modules and versions by API key. unstable: also of unstable versions."""
    return {**SERVED, **UNSTABLE} if unstable else SERVED


@functools.cache
def handler(api_key: int) -> Handler:
    """Import the handler of a served API. Handlers are imported at first use, because a broker has to start quickly."""
    return cast("Handler", importlib.import_module(f"{__name__}.{SERVED[api_key].module}"))
