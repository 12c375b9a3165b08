"""Client quotas: validated, stored, and found by filter or by client. kwire.broker.network.throttling enforces them.

Each quota is a record of the metadata log (ClientQuotaRecord) with an entity, a key and a value. An entity is a user, a
client id, both, or an IP address; a name of None is the default entity.
Source: org.apache.kafka.controller.ClientQuotaControlManager, org.apache.kafka.image.ClientQuotasImage; KIP-546.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kwire.internal_topics.cluster_state import ClusterState, QuotaEntity
from kwire.messages import ClientQuotaRecord
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.metadata_log import Commit
    from kwire.messages.alter_client_quotas_request import OpData
    from kwire.messages.describe_client_quotas_request import ComponentData

__all__ = ["Quotas"]

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
CLIENT_KEYS: dict[str, int | None] = {
    "producer_byte_rate": MAX_INT64,
    "consumer_byte_rate": MAX_INT64,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
"""Keys of users and client ids, with the largest whole number; None for those that take fractions."""
IP_KEYS: dict[str, int | None] = {"connection_creation_rate": MAX_INT32}
FRACTION = 1e-6
EXACT, DEFAULT, SPECIFIED = range(3)
BY_USER, BY_CLIENT, BY_BOTH = frozenset({USER}), frozenset({CLIENT_ID}), frozenset({USER, CLIENT_ID})


class Quotas:
    """The quotas of a cluster."""

    def __init__(self, cluster: ClusterState, commit: Commit) -> None:
        self._quotas, self._commit = cluster.quotas, commit
        self._levels: dict[str, set[frozenset[str]]] = {}  # key -> kinds of entities that had one since the start
        for entity, quotas in self._quotas.items():
            for key in quotas:
                self._levels.setdefault(key, set()).add(frozenset(kind for kind, _ in entity))
        cluster.observe("ClientQuotaRecord", self._quota_changed)

    def alter(self, parts: Iterable[tuple[str, str | None]], ops: Iterable[OpData], *, validate_only: bool) -> None:
        """Set or remove quotas of one entity; ops have key, value and remove. Raises BrokerError."""
        pairs = list(parts)
        keys = check_entity(pairs)
        changes: dict[str, float | None] = {}
        for op in ops:
            if op.key in changes:
                raise invalid(f"Duplicate quota key {op.key} not updating quota for this entity {dict(pairs)}")
            changes[op.key] = None if op.remove else op.value
            if not op.remove:
                check_value(keys, op.key, op.value)
        entity = tuple(sorted(pairs))
        present = self._quotas.get(entity, {})
        records = [(quota_record(entity, key, value), 0) for key, value in changes.items() if present.get(key) != value]
        if records and not validate_only:
            self._commit(records)

    def clear(self) -> None:
        """Remove all quotas."""
        records = [(quota_record(entity, key, None), 0) for entity, quotas in self._quotas.items() for key in quotas]
        if records:
            self._commit(records)
        self._levels.clear()

    def find(self, components: Iterable[ComponentData], *, strict: bool) -> dict[QuotaEntity, Mapping[str, float]]:
        """Return the quotas of entities that match a request's filter. Raises BrokerError."""
        exact: dict[str, str | None] = {}
        some: set[str] = set()
        for component in components:
            check_component(component, {*exact, *some})
            if component.match_type == SPECIFIED:
                some.add(component.entity_type)
            else:
                exact[component.entity_type] = component.match
        named = {*exact, *some}
        if IP in named and len(named) > 1:
            raise invalid(
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            )
        return {
            entity: quotas
            for entity, quotas in self._quotas.items()
            if (not strict or len(entity) == len(named))
            and exact.items() <= set(entity)
            and named <= {kind for kind, _ in entity}
        }

    def limit(self, key: str, user: str, client_id: str) -> tuple[tuple[str, str], float] | None:
        """Return the quota of a client as ((user, client id) that share it, limit); None without one.

        An empty user or client id does not count. The kinds of quotas set for the key decide which of the two count; if
        they differ, the most specific quota of the client does.
        """
        levels = self._levels.get(key)
        if not levels:
            return None
        if levels == {BY_CLIENT}:
            tags = "", client_id
        elif levels == {BY_USER}:
            tags = user, ""
        elif levels == {BY_BOTH}:
            tags = user, client_id
        else:
            tags = self._tags(key, user, client_id)
        limit = self._first(key, candidates(*tags))
        return None if limit is None else (tags, limit)

    def _tags(self, key: str, user: str, client_id: str) -> tuple[str, str]:
        """Return which of user and client id count if several kinds of quotas can match."""
        if self._first(key, [entity_of(user, client_id), entity_of(user, None)]) is not None:
            return user, client_id
        if self._first(key, [((USER, user),)]) is not None:
            return user, ""
        if self._first(key, [entity_of(None, client_id), entity_of(None, None)]) is not None:
            return user, client_id
        if self._first(key, [((USER, None),)]) is not None:
            return user, ""
        return "", client_id

    def _first(self, key: str, entities: Iterable[QuotaEntity]) -> float | None:
        for entity in entities:
            limit = self._quotas.get(entity, {}).get(key)
            if limit is not None:
                return limit
        return None

    def _quota_changed(self, record: ClientQuotaRecord) -> None:
        if not record.remove:
            self._levels.setdefault(record.key, set()).add(frozenset(part.entity_type for part in record.entity))


def quota_record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    """Return the record that sets a quota, or removes it (None)."""
    parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)


def entity_of(user: str | None, client_id: str | None) -> QuotaEntity:
    """Return the entity of a user and a client id, None for the default of each."""
    return ((CLIENT_ID, client_id), (USER, user))


def candidates(user: str, client_id: str) -> list[QuotaEntity]:
    """Return the entities whose quota may apply to a client, the most specific one first."""
    if user and client_id:
        return [entity_of(*each) for each in ((user, client_id), (user, None), (None, client_id), (None, None))]
    if user:
        return [((USER, name),) for name in (user, None)]
    return [((CLIENT_ID, name),) for name in (client_id, None)] if client_id else []


def check_entity(pairs: list[tuple[str, str | None]]) -> dict[str, int | None]:
    """Check an entity, and return the keys it can have. Raises BrokerError."""
    if not pairs:
        raise invalid("Invalid empty client quota entity")
    kinds = set()
    for kind, name in pairs:
        if kind not in TYPES:
            raise invalid(f"Unhandled client quota entity type: {kind}")
        if kind in kinds:
            raise invalid(f"Invalid client quota entity, duplicate entity entry {kind}")
        if name == "":
            raise invalid(f"Empty {kind} not supported")
        kinds.add(kind)
    if IP not in kinds:
        return CLIENT_KEYS
    if len(kinds) > 1:
        raise invalid("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
    address = dict(pairs)[IP]
    try:
        if address is not None:
            ipaddress.ip_address(address)
    except ValueError:
        raise invalid(f"{address} is not a valid IP or resolvable host.") from None
    return IP_KEYS


def check_value(keys: Mapping[str, int | None], key: str, value: float) -> None:
    """Check the value of a key. Raises BrokerError."""
    if key not in keys:
        raise invalid(f"Invalid configuration key {key}")
    if not value > 0:
        raise invalid(f"Quota {key} must be greater than 0")
    largest = keys[key]
    if largest is not None:
        if value > largest:
            raise invalid(f"Proposed value for {key} is too large for a {'INT' if largest == MAX_INT32 else 'LONG'}.")
        if value % 1.0 > FRACTION:
            raise invalid(f"{key} cannot be a fractional value.")


def check_component(component: ComponentData, before: set[str]) -> None:
    """Check one component of a filter. Raises BrokerError."""
    kind, match_type = component.entity_type, component.match_type
    if not kind:
        raise invalid("Invalid empty entity type.")
    if kind in before:
        raise invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in TYPES:
        raise refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if match_type not in (EXACT, DEFAULT, SPECIFIED):
        raise invalid(f"Unknown match type {match_type}")
    if (component.match is None) == (match_type == EXACT):
        raise invalid("An exact match needs a name, and the other kinds of match have none.")


def invalid(what: str) -> Exception:
    """Return the error for an invalid quota request."""
    return refusal(ErrorCode.INVALID_REQUEST, what)
