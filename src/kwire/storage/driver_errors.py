"""What an fsspec driver's exception means: the file, the credentials, the endpoint or an option. Standard library only.

Drivers raise what their client libraries raise, and no two have a class in common. Classes are known by their names,
so that no client library is imported.
"""

from __future__ import annotations

import inspect
import re

from kwire.errors import did_you_mean

__all__ = ["cause", "explain"]

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
UNKNOWN_ARGUMENT = re.compile(r"unexpected keyword argument '(\w+)'")


def cause(error: Exception) -> str:
    """What an exception says, in one line that never is empty."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def explain(error: Exception, driver: type | None = None) -> str:
    """What has failed and what to do, in one line. driver: the class whose options were given, for suggestions."""
    said, names = cause(error), {each.__name__ for each in type(error).__mro__}
    if isinstance(error, FileNotFoundError):
        return f"no such file or directory: {said}"
    if names & CREDENTIALS:
        return (
            f"no valid credentials: {said}; set them in the environment or as storage options "
            "(for S3 key and secret, or anon=true for a public bucket)"
        )
    if isinstance(error, PermissionError):
        return f"access denied: {said}; check the credentials and what they are permitted to read"
    if names & CONNECTION:
        return f"cannot connect to the server: {said}; check the network, the URL and the storage option endpoint_url"
    if unknown := UNKNOWN_ARGUMENT.search(said) if isinstance(error, TypeError) else None:
        return f"unknown storage option '{unknown[1]}'{did_you_mean(unknown[1], options_of(driver))}"
    if isinstance(error, (AttributeError, TypeError, ValueError)):
        return f"wrong storage option or URL: {said}"
    return said


def options_of(driver: type | None) -> list[str]:
    """The names that a driver's constructors take."""
    return [
        name
        for each in (driver.__mro__ if driver is not None else ())
        if "__init__" in vars(each)
        for name in inspect.signature(each.__init__).parameters  # type: ignore[misc]
    ]
