"""APIs and errors by Kafka's names."""

from __future__ import annotations

from kwire.errors import OptionError, did_you_mean
from kwire.messages import registry
from kwire.protocol.error_codes import ErrorCode

__all__ = ["FETCH", "METADATA", "METADATA_APIS", "SESSION_APIS", "SHARE_FETCH", "api_name", "parse_api", "parse_error"]


FETCH, METADATA, DESCRIBE_TOPIC_PARTITIONS, SHARE_FETCH = 1, 3, 75, 78
METADATA_APIS = frozenset({METADATA, DESCRIBE_TOPIC_PARTITIONS})
"""Their requests name topics, or all topics, and their responses the partitions."""
SESSION_APIS = frozenset({FETCH, SHARE_FETCH})
"""Their requests concern the partitions of a session too, which they do not repeat."""


def parse_api(name: str) -> int | None:
    """Return the key of an API by name, None for "*". Raises OptionError with a suggestion for an unknown name."""
    if name == "*":
        return None
    names = registry.api_names()
    by_lower = {each.lower(): each for each in names}
    known = by_lower.get(name.lower().removesuffix("request"))
    if known is None:
        raise OptionError(f"unknown API {name!r}{did_you_mean(name, names)}")
    return registry.get(f"{known}Request").API_KEY


def api_name(api_key: int) -> str:
    """Return the name of an API, such as `Produce`."""
    return registry.request(api_key).__name__.removesuffix("Request")


def parse_error(error: str | int) -> ErrorCode:
    """Return the error of Kafka's name or number.

    Raises OptionError for an unknown name, with a suggestion, or number, and for NONE.
    """
    if isinstance(error, int) and not isinstance(error, bool):
        if error not in ErrorCode.__members__.values():
            raise OptionError(f"unknown error {error}: Kafka has {min(ErrorCode)} to {max(ErrorCode)}")
        code = ErrorCode(error)
    elif not isinstance(error, str):
        raise OptionError(f"invalid error {error!r}: must be a name, such as 'NOT_LEADER_OR_FOLLOWER', or a number")
    else:
        try:
            code = ErrorCode[error.upper()]
        except KeyError:
            hint = did_you_mean(error, [each.name for each in ErrorCode])
            raise OptionError(f"unknown error {error!r}{hint}") from None
    if code is ErrorCode.NONE:
        raise OptionError("NONE is not an error: use `observe` for requests that succeed")
    return code
