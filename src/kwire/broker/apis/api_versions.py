"""ApiVersions (api key 18), versions 0 to 5: the supported APIs and versions, and the features of the cluster.

    1  throttle time    3  client software name and version, features    4  features with a minimum version of 0
    5  cluster id and node id that the client expects (KIP-1242)

An unsupported version gets a response in version 0 with UNSUPPORTED_VERSION and the versions of ApiVersions (KIP-511).
Client software names and versions may contain letters, digits, dashes and dots. A client that expects another cluster
or node gets REBOOTSTRAP_REQUIRED, one that names only one of the two INVALID_REQUEST. Telemetry APIs are listed only
if there is a client metrics subscription; Kafka lists them if a metrics receiver plugin is configured.

Source: kafka.server.KafkaApis.handleApiVersionsRequest, ApiVersionsRequest.isValid, ApiVersionsResponse 4.4.0; KIP-35,
KIP-511, KIP-584, KIP-1242.
"""

from __future__ import annotations

import functools
import re

from kwire.broker.apis import served
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import ApiVersionsRequest, ApiVersionsResponse
from kwire.messages.api_versions_response import ApiVersion
from kwire.protocol.error_codes import ErrorCode

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
LOWEST_ZERO_VERSION, EXPECTATION_VERSION = 4, 5
ANY_NODE = -1
TELEMETRY = frozenset({71, 72})


@functools.cache
def served_versions(unstable: bool) -> list[ApiVersion]:
    """Return the versions of every served API. unstable: with unstable.api.versions.enable."""
    apis = served(unstable).items()
    return [ApiVersion(api_key=key, min_version=api.lowest, max_version=api.highest) for key, api in apis]


def handle(node: Node, context: RequestContext, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """List APIs and features. request: None for an unsupported version."""
    if request is None:
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION, "")
    if context.api_version >= EXPECTATION_VERSION and (request.cluster_id is None) != (request.node_id == ANY_NODE):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if context.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not SOFTWARE.fullmatch(name) or not SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.peer.client_software = name, version
    expected = request.cluster_id, request.node_id
    if expected[0] is not None and expected != (node.cluster_id, node.node_id):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return ApiVersionsResponse(
        api_keys=[
            key
            for key in served_versions(node.settings.unstable_api_versions_enable)
            if key.api_key not in TELEMETRY or node.client_metrics.is_subscribed
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in node.features.supported().items()
            if lowest > 0 or context.api_version >= LOWEST_ZERO_VERSION
        ],
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in node.features.finalized().items()
        ],
        finalized_features_epoch=node.metadata_log.last_offset,
    )


def error_response(request: ApiVersionsRequest | None, code: ErrorCode, message: str) -> ApiVersionsResponse:
    """Build an error response with the versions of ApiVersions, which the client can retry with."""
    return ApiVersionsResponse(
        error_code=code, api_keys=[key for key in served_versions(False) if key.api_key == ApiVersionsResponse.API_KEY]
    )
