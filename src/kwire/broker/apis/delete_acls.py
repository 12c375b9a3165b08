"""DeleteAcls (api key 31), versions 0 to 3: delete the ACLs that match filters, with a result for each filter.

    1  resource patterns (KIP-290)    2  flexible    3  user resources

A filter with unknown values closes the connection.

Source: kafka.server.AclApis.handleDeleteAcls, org.apache.kafka.controller.AclControlManager.
"""

from __future__ import annotations

from kwire.broker.apis.describe_acls import filter_of, require_known_values
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.security.acls import Acls
from kwire.errors import BrokerError
from kwire.messages import DeleteAclsRequest, DeleteAclsResponse
from kwire.messages.delete_acls_request import DeleteAclsFilter
from kwire.messages.delete_acls_response import DeleteAclsFilterResult
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Delete the matches of each filter."""
    for filter_ in request.filters:
        require_known_values(context, filter_of(filter_))
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    if node.security.authorizer is None:
        raise refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return DeleteAclsResponse(filter_results=[remove(node.security.acls, filter_) for filter_ in request.filters])


def remove(acls: Acls, filter_: DeleteAclsFilter) -> DeleteAclsFilterResult:
    """Delete the matches of one filter."""
    try:
        removed = acls.remove(filter_of(filter_))
    except BrokerError as error:
        return DeleteAclsFilterResult(error_code=error.code, error_message=error.what)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsResponse.DeleteAclsMatchingAcl(error_message=None, **acl._asdict()) for acl in removed
        ],
    )


def error_response(request: DeleteAclsRequest, code: ErrorCode, message: str) -> DeleteAclsResponse:
    """Build a response with the same error for every filter."""
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error_code=code, error_message=message) for _ in request.filters]
    )
