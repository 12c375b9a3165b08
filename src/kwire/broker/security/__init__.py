"""Security: SASL, TLS, access control, delegation tokens, quotas.

Security            the security of a node
SaslSession         the authentication of one connection
Authorizer, Acls    access control
Credentials, Quotas, DelegationTokens
server_context, principal_of        TLS
"""

from kwire.broker.security.acls import AclFilter, Acls
from kwire.broker.security.authorizer import Authorizer
from kwire.broker.security.credentials import Credentials
from kwire.broker.security.errors import AuthenticationFailed
from kwire.broker.security.quotas import Quotas
from kwire.broker.security.security import Security
from kwire.broker.security.sessions import SaslSession
from kwire.broker.security.tls import principal_of, server_context

__all__ = [
    "AclFilter",
    "Acls",
    "AuthenticationFailed",
    "Authorizer",
    "Credentials",
    "Quotas",
    "SaslSession",
    "Security",
    "principal_of",
    "server_context",
]
