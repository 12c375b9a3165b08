"""DescribeAcls (api key 29), versions 0 to 3: list the ACLs that match a filter, by resource.

    1  resource patterns (KIP-290)    2  flexible    3  user resources

Version 0 has no prefixed patterns and omits ACLs that use them.

Source: kafka.server.AclApis.handleDescribeAcls, DescribeAclsResponse.aclsResources.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.security.acls import AclFilter
from kwire.messages import DescribeAclsRequest, DescribeAclsResponse
from kwire.messages.delete_acls_request import DeleteAclsFilter
from kwire.messages.describe_acls_response import DescribeAclsResource
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """List the matching ACLs."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    if node.security.authorizer is None:
        raise refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    acl_filter = filter_of(request)
    acl_filter.check()
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
