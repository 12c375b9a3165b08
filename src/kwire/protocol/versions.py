"""Which version of an API both sides speak (KIP-35, KIP-511).

A client asks with ApiVersions in the highest version it knows. A broker that does not know that version answers in
version 0 with UNSUPPORTED_VERSION, and since KIP-511 names the ApiVersions it does know; the client asks again in one
of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kwire.errors import UnsupportedVersion
from kwire.messages import registry
from kwire.schema import Versions

__all__ = ["API_VERSIONS", "UNSUPPORTED_VERSION", "describe", "highest_common", "offered", "supported"]

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35


def supported(kafka: str | None = None) -> dict[int, Versions]:
    """Every API of which kwire has request and response, by key, with its versions; those of one release with kafka.

    Unstable versions are left out, as a broker does unless told otherwise.
    """
    found = {}
    for name in registry.names(kafka):
        if name.endswith("Request"):
            spec = registry.get(name, kafka).SPEC
            if spec.api_key is not None and spec.stable:
                found[spec.api_key] = spec.stable
    return dict(sorted(found.items()))


def highest_common(api_key: int, ours: Versions | None, theirs: Versions | None) -> int:
    """The highest version in both ranges. Raises UnsupportedVersion if one side lacks the API or they do not meet."""
    if ours is None or theirs is None:
        side = "this side" if ours is None else "the other side"
        raise UnsupportedVersion(f"api key {api_key} is not spoken by {side}")
    both = ours.intersect(theirs)
    if not both:
        raise UnsupportedVersion(f"api key {api_key}: versions {ours} here, {theirs} on the other side")
    return both.highest


def offered(api_keys: Iterable[Any]) -> dict[int, Versions]:
    """What an ApiVersionsResponse's `api_keys` offer. A range with no version in it is no offer."""
    ranges = {key.api_key: Versions(max(0, key.min_version), key.max_version) for key in api_keys}
    return {api_key: versions for api_key, versions in ranges.items() if versions}


def describe(versions: Mapping[int, Versions], error_code: int = 0) -> Any:
    """The ApiVersionsResponse that offers these versions.

    With UNSUPPORTED_VERSION only ApiVersions itself is named: a client needs no more to ask again (KIP-511).
    """
    cls: Any = registry.response(API_VERSIONS)
    named = versions if error_code == 0 else {k: v for k, v in versions.items() if k == API_VERSIONS}
    return cls(
        error_code=error_code,
        api_keys=[
            cls.ApiVersion(api_key=api_key, min_version=each.lowest, max_version=each.highest)
            for api_key, each in sorted(named.items())
        ],
    )
