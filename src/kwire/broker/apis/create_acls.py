"""CreateAcls (api key 30), versions 0 to 3: create ACLs, with a result for each.

    1  resource patterns (KIP-290)    2  flexible    3  user resources

Source: kafka.server.AclApis.handleCreateAcls, org.apache.kafka.controller.AclControlManager.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.security.acls import Acls
from kwire.errors import BrokerError
from kwire.internal_topics.cluster_state import Acl
from kwire.messages import CreateAclsRequest, CreateAclsResponse
from kwire.messages.create_acls_request import AclCreation
from kwire.messages.create_acls_response import AclCreationResult
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Create each ACL."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    if node.security.authorizer is None:
        raise refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return CreateAclsResponse(results=[create(node.security.acls, creation) for creation in request.creations])


def create(acls: Acls, creation: AclCreation) -> AclCreationResult:
    """Create one ACL."""
    acl = Acl(
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )
    try:
        acls.add(acl)
    except BrokerError as error:
        return AclCreationResult(error_code=error.code, error_message=error.what)
    return AclCreationResult(error_message=None)


def error_response(request: CreateAclsRequest, code: ErrorCode, message: str) -> CreateAclsResponse:
    """Build a response with the same error for every ACL."""
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=code, error_message=message) for _ in request.creations]
    )
