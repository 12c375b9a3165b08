"""Whether the settings of a run let it in at all. If not, every check would fail, for a reason that is not its own."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing

from kwire.conformance.broker.bench import Address, Session
from kwire.conformance.broker.requests import request
from kwire.errors import ConnectionFailed, DecodeError, OptionError
from kwire.protocol.error_codes import ErrorCode

__all__ = ["check_access"]

HANDSHAKE_S = 3.0
ASKS_FOR_LOGIN = (0, ErrorCode.UNSUPPORTED_SASL_MECHANISM)
"""Errors of SaslHandshake on a listener with SASL. One without it has ILLEGAL_SASL_STATE."""


def check_access(session: Session) -> None:
    """Connect and log in once, to the first server that accepts connections.

    Raises OptionError if the listener requires TLS or a login that the settings lack, and for a library that they need;
    ConnectionFailed, BrokerError for a refused connection or login. What a broker does otherwise is for the checks.
    """
    failure: ConnectionFailed | None = None
    for address in session.servers:
        try:
            session.open(address, []).close()
        except ConnectionFailed as error:
            failure = failure or error
        except DecodeError:
            return
        else:
            _check_protocol(session, address)
            return
    if failure is not None:
        raise failure


def _check_protocol(session: Session, address: Address) -> None:
    settings, where = session.settings, f"{address[0]}:{address[1]}"
    if settings.uses_sasl:
        return
    try:
        with closing(session.open(address, [])) as connection:
            connection.ask(request("ApiVersions", 0), 0)
            body = connection.ask(request("SaslHandshake", 1, mechanism="PLAIN"), 1)
    except (ConnectionFailed, DecodeError):
        if not settings.uses_tls and _speaks_tls(address):
            raise OptionError(
                f"{where}: the listener requires TLS; set security.protocol, as in --config-file"
            ) from None
        return
    if body.error_code in ASKS_FOR_LOGIN and body.mechanisms:
        raise OptionError(
            f"{where}: the listener requires a login ({', '.join(map(str, body.mechanisms))}); set security.protocol, "
            "sasl.mechanism and the credentials, as in --config-file"
        )


def _speaks_tls(address: Address) -> bool:
    """Return whether a listener completes a handshake of TLS, whoever it is: nothing is sent to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(address, timeout=HANDSHAKE_S) as opened, context.wrap_socket(opened):
            return True
    except OSError:  # ssl.SSLError too
        return False
