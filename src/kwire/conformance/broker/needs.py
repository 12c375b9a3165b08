"""What a check may need of the run or the cluster. Without it, the check is not applicable, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from kwire.conformance.broker.bench import PREFIX, Bench, Session
from kwire.conformance.broker.requests import error_name, request
from kwire.conformance.broker.users import stranger
from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode

__all__ = ["lacks"]

MECHANISM = "SCRAM-SHA-256"
NOT_ALLOWED = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED,)


def lacks(session: Session, need: str) -> str | None:
    """Return why the run or the cluster does not have what a check needs; None if it does."""
    if need not in session.lacking:
        session.lacking[need] = None
        with suppress(Exception):  # a broker that lies or dies is for the checks to find
            session.lacking[need] = NEEDS[need](session)
    return session.lacking[need]


def _security(session: Session) -> str | None:
    if session.settings.uses_tls or session.settings.uses_sasl:
        return "the connection has to be plain, because the check begins with its first byte"
    return None


def _credentials(session: Session) -> str | None:
    return None if session.settings.uses_sasl else "no SASL credentials are given; use --config-file"


def _no_credentials(session: Session) -> str | None:
    return "the check is about connections without authentication" if session.settings.uses_sasl else None


def _plain_credentials(session: Session) -> str | None:
    if session.settings.uses_sasl and session.settings.sasl_mechanism != "PLAIN":
        return "the given credentials are not those of SASL/PLAIN"
    return _credentials(session)


def _own_users(session: Session) -> str | None:
    lacking = _credentials(session)
    if lacking is not None:
        return lacking
    bench = Bench(session, "needs")
    try:
        connection = bench.connect(logs_in=False)
        mechanisms = connection.ask(request("SaslHandshake", 1, mechanism=MECHANISM), 1).mechanisms
        if MECHANISM not in mechanisms:
            return f"the listener does not enable {MECHANISM}, so that checks cannot have users of their own"
        if not session.with_users and (lacking := _only_own_users(bench)) is not None:
            return lacking
        stranger(bench)
    except BrokerError as error:
        if error.code in NOT_ALLOWED:
            return "the given credentials may not create users: ALTER on the cluster is needed"
    finally:
        bench.close()
    return None


def _only_own_users(bench: Bench) -> str | None:
    """Return why no user may be deleted: Kafka with KRaft can forget others when it starts again.

    Seen in 3.9.1 and 4.4.0: with a user created, and another one created and deleted since the last snapshot, a broker
    that starts takes the image of the mechanism without the first one (ScramDelta.apply), and writes its next snapshot
    without it.
    """
    what = "deleting a user of a check can make Kafka forget other SCRAM users when it starts again"
    try:
        body = bench.ask("DescribeUserScramCredentials", at=bench.controller(), users=None)
    except Exception as error:  # whatever the broker does: nothing is created unless the users are known
        return f"the cluster's users cannot be listed ({error}), and {what}"
    if body.error_code:
        return f"the cluster's users cannot be listed ({error_name(body.error_code)}), and {what}"
    others = sorted(each.user for each in body.results if not each.user.startswith(f"{PREFIX}-"))
    return f"the cluster has SCRAM users, such as '{others[0]}', and {what}; see --with-users" if others else None


def _authorizer(session: Session) -> str | None:
    lacking = _credentials(session)
    if lacking is not None:
        return lacking
    code = _acls_error(session)
    if code == ErrorCode.SECURITY_DISABLED:
        return "the cluster has no authorizer"
    return (
        "the given credentials may not describe ACLs: ALTER on the cluster is needed" if code in NOT_ALLOWED else None
    )


def _no_authorizer(session: Session) -> str | None:
    return None if _acls_error(session) else "the cluster has an authorizer"


def _acls_error(session: Session) -> int:
    """Return the error of DescribeAcls."""
    bench = Bench(session, "needs")
    try:
        body = bench.ask("DescribeAcls", resource_type_filter=1, operation=1, permission_type=1)
    finally:
        bench.close()
    return int(body.error_code)


def _telemetry(session: Session) -> str | None:
    if session.serves("GetTelemetrySubscriptions") or not session.served:
        return None
    return "the broker does not list the APIs of telemetry, as Kafka without a plugin that receives metrics"


def _streams_groups(session: Session) -> str | None:
    bench = Bench(session, "needs")
    try:
        body = bench.ask("ApiVersions", 3, client_software_name="kwire", client_software_version="1")
    finally:
        bench.close()
    levels = {each.name: each.max_version_level for each in body.finalized_features}
    return None if levels.get("streams.version") else "the cluster has no streams groups: streams.version is 0"


def _no_user_quota(key: str, session: Session) -> str | None:
    """Return a quota of the run's user, which a quota of a client id does not count beside.

    Source: ClientQuotaManager.DefaultQuotaCallback.
    """
    bench, settings = Bench(session, "needs"), session.settings
    own = settings.sasl_username if settings.uses_sasl else None if settings.uses_tls else "ANONYMOUS"
    try:
        components = [{"entity_type": "user", "match_type": 2, "match": None}]
        body = bench.ask("DescribeClientQuotas", components=components, strict=False)
    finally:
        bench.close()
    for entry in body.entries or ():
        names = {each.entity_type: each.entity_name for each in entry.entity}
        counts = own is None or names.get("user") in (None, own)
        if counts and names.get("client-id") is None and any(each.key == key for each in entry.values):
            user = "the default user" if names.get("user") is None else f"user '{names['user']}'"
            return f"the cluster has a {key} of {user}, which comes before that of a client id"
    return None


NEEDS: Mapping[str, Callable[[Session], str | None]] = {
    "plain connection": _security,
    "credentials": _credentials,
    "no credentials": _no_credentials,
    "PLAIN credentials": _plain_credentials,
    "own users": _own_users,
    "authorizer": _authorizer,
    "no authorizer": _no_authorizer,
    "telemetry": _telemetry,
    "streams groups": _streams_groups,
    "no producer_byte_rate of users": partial(_no_user_quota, "producer_byte_rate"),
    "no consumer_byte_rate of users": partial(_no_user_quota, "consumer_byte_rate"),
    "no request_percentage of users": partial(_no_user_quota, "request_percentage"),
    "no controller_mutation_rate of users": partial(_no_user_quota, "controller_mutation_rate"),
}
