"""ApiVersions (api key 18), versions 0 to 4: what is spoken here, and which features the cluster has.

    1  throttle time    3  client's name and version, features    4  features whose lowest version is 0

A version that is not served is answered in version 0 with UNSUPPORTED_VERSION and what is (KIP-511). A client's name
or version with other characters than letters, digits, dash and dot is refused. Version 5 (client's cluster id) is
left out: Kafka 3.9 has 0 to 4. The telemetry APIs are listed once there is a client metrics subscription, so that
clients do not ask for one in vain; Kafka lists them when it has a plugin that receives metrics.
Source: kafka.server.KafkaApis.handleApiVersionsRequest, ApiVersionsResponse, KIP-35, KIP-511, KIP-584.
"""

from __future__ import annotations

import functools
import re

from kwire.broker.apis import SERVED
from kwire.broker.context import RequestContext
from kwire.broker.features import FINALIZED, SUPPORTED, TRANSACTION_VERSION
from kwire.broker.node import Node
from kwire.messages import ApiVersionsRequest, ApiVersionsResponse
from kwire.messages.api_versions_response import ApiVersion
from kwire.protocol.error_codes import ErrorCode

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
LOWEST_ZERO_VERSION = 4
TELEMETRY = frozenset({71, 72})


@functools.cache
def served_versions() -> list[ApiVersion]:
    """Return the versions of every served API."""
    return [ApiVersion(api_key=key, min_version=api.lowest, max_version=api.highest) for key, api in SERVED.items()]


def handle(node: Node, context: RequestContext, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """The answer; request is None for a version that is not served."""
    if request is None:
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION, "")
    if context.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not SOFTWARE.fullmatch(name) or not SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.peer.client_software = name, version
    return ApiVersionsResponse(
        api_keys=[
            key for key in served_versions() if key.api_key not in TELEMETRY or node.client_metrics.is_subscribed
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in SUPPORTED.items()
            if lowest > 0 or context.api_version >= LOWEST_ZERO_VERSION
        ],
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in {**FINALIZED, TRANSACTION_VERSION: node.settings.transaction_version}.items()
            if level > 0
        ],
        finalized_features_epoch=node.metadata_log.last_offset,
    )


def error_response(request: ApiVersionsRequest | None, code: ErrorCode, message: str) -> ApiVersionsResponse:
    """An error, with the versions of ApiVersions itself, so that a client can ask again."""
    return ApiVersionsResponse(
        error_code=code, api_keys=[key for key in served_versions() if key.api_key == ApiVersionsResponse.API_KEY]
    )
