"""DescribeAcls (api key 29), versions 0 to 3: list the ACLs that match a filter, by resource.

    1  resource patterns (KIP-290)    2  flexible    3  user resources

Version 0 has no prefixed patterns and omits ACLs that use them. A filter with unknown values closes the connection.

Source: kafka.server.AclApis.handleDescribeAcls, DescribeAclsResponse.aclsResources.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.security.acls import AclFilter
from kwire.errors import BrokerError
from kwire.messages import DescribeAclsRequest, DescribeAclsResponse
from kwire.messages.delete_acls_request import DeleteAclsFilter
from kwire.messages.describe_acls_response import DescribeAclsResource
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """List the matching ACLs."""
    acl_filter = filter_of(request)
    require_known_values(context, acl_filter)
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    if node.security.authorizer is None:
        raise refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in sorted(filter(acl_filter.matches, node.security.acls)):
        resource = resources.setdefault(
            acl[:3],
            DescribeAclsResource(
                resource_type=acl.resource_type, resource_name=acl.resource_name, pattern_type=acl.pattern_type, acls=[]
            ),
        )
        resource.acls.append(
            DescribeAclsResponse.AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def require_known_values(context: RequestContext, acl_filter: AclFilter) -> None:
    """Check the numbers of a filter. Kafka cannot read a request with unknown ones, and closes the connection.

    Raises BrokerError: INVALID_REQUEST.
    """
    try:
        acl_filter.check()
    except BrokerError:
        context.peer.must_close_silently = True
        raise


def filter_of(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the ACL filter of a request, or of one element of DeleteAcls."""
    return AclFilter(
        resource_type=request.resource_type_filter,
        resource_name=request.resource_name_filter,
        pattern_type=request.pattern_type_filter,
        principal=request.principal_filter,
        host=request.host_filter,
        operation=request.operation,
        permission_type=request.permission_type,
    )
