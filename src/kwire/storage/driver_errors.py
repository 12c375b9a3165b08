"""Translate exceptions of fsspec drivers into messages about the file, credentials, endpoint or option at fault.

Drivers raise the exceptions of their client libraries, which share no base class. They are recognized by class name, so
that no client library has to be imported.
"""

from __future__ import annotations

import errno
import inspect
import re

from kwire.errors import did_you_mean

__all__ = ["NO_ROOM", "cause", "explain", "is_replaced", "system_error"]

CREDENTIALS = frozenset(
    {
        "NoCredentialsError",  # botocore
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "ProfileNotFound",
        "NoAuthTokenError",
        "TokenRetrievalError",
        "DefaultCredentialsError",  # google-auth
        "RefreshError",
        "ClientAuthenticationError",  # azure
    }
)
CONNECTION = frozenset(
    {
        "ConnectionError",  # Python, botocore, requests
        "HTTPClientError",  # botocore
        "ClientConnectionError",  # aiohttp
        "ServiceRequestError",  # azure
        "TimeoutError",
        "gaierror",
    }
)
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})  # on a disk, for this user or file
OF_RUST = re.compile(r"\(os error (\d{1,3})\)")  # how Rust's libraries show the number
UNKNOWN_ARGUMENT = re.compile(r"unexpected keyword argument '(\w+)'")


def cause(error: Exception) -> str:
    """Return an exception's message as one non-empty line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def system_error(error: BaseException | None) -> int | None:
    """Return the errno of an error, or of one of its causes; None if the operating system did not raise any of them."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno
        if said := OF_RUST.search(str(error)):
            return int(said[1])
        error = error.__cause__
    return None


def is_replaced(error: Exception) -> bool:
    """Return whether a condition on the version of an object was not met."""
    response = getattr(error.__cause__, "response", None)  # of botocore
    return isinstance(response, dict) and response.get("Error", {}).get("Code") in ("PreconditionFailed", "412")


def explain(error: Exception, driver: type | None = None) -> str:
    """Return what failed and the remedy, in one line. driver: the class that takes the options, for suggestions."""
    said, names = cause(error), {each.__name__ for each in type(error).__mro__}
    if isinstance(error, FileNotFoundError):
        return f"no such file or directory: {said}"
    if is_replaced(error):
        return "the object changed during the read: it was replaced; read it again"
    if names & CREDENTIALS:
        return (
            f"no valid credentials: {said}; set them in the environment or as storage options "
            "(for S3 key and secret, or anon=true for a public bucket)"
        )
    if isinstance(error, PermissionError):
        return f"access denied: {said}; check the credentials and their permissions"
    if names & CONNECTION:
        return f"cannot connect to the server: {said}; check the network, the URL and the storage option endpoint_url"
    if unknown := UNKNOWN_ARGUMENT.search(said) if isinstance(error, TypeError) else None:
        return f"unknown storage option '{unknown[1]}'{did_you_mean(unknown[1], options_of(driver))}"
    if isinstance(error, (AttributeError, TypeError, ValueError)):
        return f"wrong storage option or URL: {said}"
    return said


def options_of(driver: type | None) -> list[str]:
    """Return the option names that a driver's constructors accept."""
    return [
        name
        for each in (driver.__mro__ if driver is not None else ())
        if "__init__" in vars(each)
        for name in inspect.signature(each.__init__).parameters  # type: ignore[misc]
    ]
