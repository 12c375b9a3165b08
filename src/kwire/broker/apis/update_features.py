"""UpdateFeatures (api key 57), versions 0 to 2: set the levels of the cluster's features.

    1  validation only, safe and unsafe downgrades    2  no results of single features

All updates are made, or none. Features are `metadata.version`, `transaction.version` and `share.version`. A request
that names a feature several times sets the last level. At `share.version` 0, all share sessions end. The field
`allow_downgrade` of version 0 is ignored, as in Kafka 4.

Source: org.apache.kafka.controller.QuorumController.updateFeatures, FeatureControlManager 4.4.0; KIP-584, KIP-778.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_requests import end_all_sessions
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.features import FeatureUpdate, UpgradeType
from kwire.broker.node import Node
from kwire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse
from kwire.protocol.error_codes import ErrorCode, refusal

UPGRADE_TYPE_VERSION, NO_RESULTS_VERSION = 1, 2


def handle(node: Node, context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Set all levels. Raises BrokerError."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    updates = {
        each.feature: FeatureUpdate(
            name=each.feature,
            level=each.max_version_level,
            kind=each.upgrade_type if context.api_version >= UPGRADE_TYPE_VERSION else UpgradeType.UPGRADE,
        )
        for each in request.feature_updates
    }
    problem = node.features.problem_of(updates.values(), node.node_id)
    if problem is not None:
        what = f"The update failed for all features since the following feature had an error: {problem}"
        raise refusal(ErrorCode.INVALID_UPDATE_VERSION, what)
    if not request.validate_only:
        node.controller.update_features({each.name: each.level for each in updates.values()})
        if not node.features.has_share_groups:
            end_all_sessions(node)
    response = UpdateFeaturesResponse(error_message=None)
    if context.api_version < NO_RESULTS_VERSION:
        response.results = [
            UpdateFeaturesResponse.UpdatableFeatureResult(feature=each.feature, error_message="NONE")
            for each in request.feature_updates
        ]
    return response
