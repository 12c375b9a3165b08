"""Negotiation of API versions (KIP-35, KIP-511).

A client sends ApiVersions in the highest version it supports. A broker that does not support that version responds in
version 0 with UNSUPPORTED_VERSION and, since KIP-511, with the versions of ApiVersions that it supports; the client
then uses one of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kwire.errors import UnsupportedVersion
from kwire.messages import ApiVersionsRequest, ApiVersionsResponse, registry
from kwire.schema import Versions

if TYPE_CHECKING:
    from kwire.messages.api_versions_response import ApiVersion
    from kwire.messages.registry import Definitions

__all__ = ["API_VERSIONS", "UNSUPPORTED_VERSION", "describe", "highest_common", "offered", "supported"]

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35


def supported(kafka: Definitions | None = None) -> dict[int, Versions]:
    """Return the versions of every API that kwire supports, by api key; with kafka, the versions of that release, or of
    definitions of one's own and Kafka's ApiVersions.

    Without unstable versions, as a broker whose unstable.api.versions.enable is false.
    """
    versions: dict[int, Versions] = {}
    for name in registry.names(kafka):
        if name.endswith("Request"):
            spec = registry.get(name, kafka).SPEC
            if spec.api_key is None or not spec.stable:
                continue
            before = versions.get(spec.api_key)  # an API whose name has changed, such as ElectPreferredLeaders
            if before is None or before.highest < spec.stable.highest:
                versions[spec.api_key] = spec.stable
    if not (kafka is None or isinstance(kafka, str)):
        versions.setdefault(API_VERSIONS, ApiVersionsRequest.VALID_VERSIONS)
    return dict(sorted(versions.items()))


def highest_common(api_key: int, ours: Versions | None, theirs: Versions | None) -> int:
    """Return the highest version in both ranges; None is an API that a side lacks. Raises UnsupportedVersion."""
    if ours is None or theirs is None:
        side = "this side" if ours is None else "the other side"
        raise UnsupportedVersion(f"api key {api_key} is not supported by {side}")
    both = ours.intersect(theirs)
    if not both:
        raise UnsupportedVersion(
            f"api key {api_key} has no common version: this side supports {ours}, the other {theirs}"
        )
    return both.highest


def offered(api_keys: Iterable[ApiVersion]) -> dict[int, Versions]:
    """Return the versions in an ApiVersionsResponse's `api_keys`, by api key, without empty ranges."""
    ranges = {key.api_key: Versions(max(0, key.min_version), key.max_version) for key in api_keys}
    return {api_key: versions for api_key, versions in ranges.items() if versions}


def describe(versions: Mapping[int, Versions], error_code: int = 0) -> ApiVersionsResponse:
    """Make an ApiVersionsResponse with these versions; with UNSUPPORTED_VERSION, of ApiVersions alone (KIP-511)."""
    listed = versions if error_code == 0 else {k: v for k, v in versions.items() if k == API_VERSIONS}
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=api_key, min_version=each.lowest, max_version=each.highest)
            for api_key, each in sorted(listed.items())
        ],
    )
