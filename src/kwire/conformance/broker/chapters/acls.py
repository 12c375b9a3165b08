"""ACLs: how they are created, found and deleted, and what a user with some of them may do."""

from __future__ import annotations

from typing import Any

from kwire.conformance.broker.bench import Bench, Topic, User
from kwire.conformance.broker.chapters.data import batch, fetch_fields
from kwire.conformance.broker.checks import Allowed, Chapter
from kwire.conformance.broker.requests import error_name, request
from kwire.conformance.broker.users import new_user, stranger
from kwire.errors import BrokerError
from kwire.internal_topics.enums import Operation, PatternType, Permission, ResourceType
from kwire.protocol.error_codes import ErrorCode

__all__ = ["USERS", "allow", "chapter", "own_acls"]

chapter = Chapter("ACLs")
ACLS = {"CreateAcls": 1, "DescribeAcls": 1, "DeleteAcls": 1}
USES = {**ACLS, "AlterUserScramCredentials": 0}
AUTHORIZER, USERS = ("authorizer",), ("authorizer", "own users")
SOURCE, RULES = "KIP-11, KIP-290; AclControlManager", "KIP-290; StandardAuthorizer"
CLUSTER, OTHER_HOST = "kafka-cluster", "192.0.2.1"
TOPIC, GROUP, TXN = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

Entry = dict[str, Any]


def _entry(principal: str, name: str, operation: int = Operation.READ, **fields: Any) -> Entry:
    """Return an ACL as in CreateAcls: a literal one of a topic that allows something from any host."""
    return {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": principal,
        "host": "*",
        "operation": operation,
        "permission_type": Permission.ALLOW,
        **fields,
    }


def _filter(entry: Entry, **fields: Any) -> Entry:
    """Return the filter that finds one ACL."""
    named = {
        "resource_type_filter": entry["resource_type"],
        "resource_name_filter": entry["resource_name"],
        "pattern_type_filter": entry["resource_pattern_type"],
        "principal_filter": entry["principal"],
        "host_filter": entry["host"],
    }
    return {**named, "operation": entry["operation"], "permission_type": entry["permission_type"], **fields}


def _all_of(principal: str, **fields: Any) -> Entry:
    """Return the filter that finds every ACL of a principal."""
    everything = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": PatternType.ANY}
    others = {"host_filter": None, "operation": Operation.ANY, "permission_type": Permission.ANY}
    return {**everything, **others, "principal_filter": principal, **fields}


def _create(bench: Bench, *entries: Entry, version: int | None = None) -> list[str]:
    """Create ACLs, and wait until they are described; they are deleted at the end. Returns the errors."""
    for principal in {each["principal"] for each in entries}:
        own_acls(bench, principal)
    body = bench.ask("CreateAcls", version, at=bench.controller(), creations=list(entries))
    errors = [error_name(each.error_code) for each in body.results]
    for entry, error in zip(entries, errors, strict=True):
        if error == "NONE":
            _wait(bench, _filter(entry), True)
    return errors


def allow(bench: Bench, user: User, topic: str, operation: int) -> None:
    """Allow a user something on a topic. Raises BrokerError."""
    (error,) = _create(bench, _entry(user.principal, topic, operation))
    if error != "NONE":
        raise BrokerError("CreateAcls", ErrorCode[error])


def own_acls(bench: Bench, principal: str) -> None:
    """Delete the ACLs of a principal when the check has ended."""

    def remove(at: Bench) -> None:
        (result,) = at.ask("DeleteAcls", at=at.controller(), filters=[_all_of(principal)]).filter_results
        if result.error_code:
            raise BrokerError(principal, result.error_code)

    if bench.session.prefix in principal:
        bench.own(f"ACLs of {principal}", remove)


def _delete(bench: Bench, *filters: Entry) -> Any:
    """Delete ACLs, and wait until none is described. Returns the results: an error, or the number of ACLs."""
    body = bench.ask("DeleteAcls", at=bench.controller(), filters=list(filters))
    for each in filters:
        _wait(bench, each, False)
    return [error_name(each.error_code) if each.error_code else len(each.matching_acls) for each in body.filter_results]


def _wait(bench: Bench, wanted: Entry, is_there: bool) -> None:
    bench.settled(lambda: bool(_described(bench, wanted)), is_there)


def _described(bench: Bench, wanted: Entry, version: int | None = None) -> list[list[Any]]:
    """Return the ACLs that a filter finds, without the prefix of names, sorted; the error if there is one."""
    body = bench.ask("DescribeAcls", version, **wanted)
    if body.error_code:
        return [[error_name(body.error_code)]]
    prefix = bench.name("")
    return sorted(
        [
            each.resource_type,
            each.pattern_type,
            each.resource_name.replace(prefix, "~"),
            acl.principal.replace(prefix, "~"),
            acl.host,
            acl.operation,
            acl.permission_type,
        ]
        for each in body.resources
        for acl in each.acls
    )


# How ACLs are kept


@chapter.check("ACL-001", SOURCE, uses=ACLS, needs=AUTHORIZER)
def created(bench: Bench) -> Any:
    """A created ACL is described with all of its fields.

    Create ACLs of a topic, a prefix of topics, a group, a transactional id and the cluster, and describe those of the
    principal.
    """
    name, principal = bench.name("thing"), f"User:{bench.name('user')}"
    errors = _create(
        bench,
        _entry(principal, name),
        _entry(principal, name, Operation.WRITE, resource_pattern_type=PREFIXED, host=OTHER_HOST),
        _entry(principal, name, Operation.DELETE, resource_type=GROUP, permission_type=Permission.DENY),
        _entry(principal, name, Operation.ALL, resource_type=TXN),
        _entry(principal, CLUSTER, Operation.IDEMPOTENT_WRITE, resource_type=ResourceType.CLUSTER),
    )
    return {"errors": errors, "acls": _described(bench, _all_of(principal))}


@chapter.check("ACL-002", SOURCE, uses=ACLS, needs=AUTHORIZER)
def created_twice(bench: Bench) -> Any:
    """An ACL that exists can be created again, and is still one.

    Create an ACL twice in one request, and once more.
    """
    principal = f"User:{bench.name('user')}"
    entry = _entry(principal, bench.name("thing"))
    errors = [_create(bench, entry, entry), _create(bench, entry)]
    return {"errors": errors, "acls": len(_described(bench, _all_of(principal)))}


@chapter.check("ACL-003", SOURCE, uses=ACLS, needs=AUTHORIZER)
def deleted(bench: Bench) -> Any:
    """Each filter of DeleteAcls has its own result, and what does not match stays.

    Create three ACLs, and delete with two filters, of which the second finds nothing.
    """
    principal = f"User:{bench.name('user')}"
    first, *rest = (_entry(principal, bench.name(each)) for each in ("a", "b", "c"))
    _create(bench, first, *rest)
    deleted = _delete(bench, _filter(first), _all_of(f"User:{bench.name('nobody')}"))
    return {"deleted": deleted, "acls": _described(bench, _all_of(principal))}


@chapter.check("ACL-004", SOURCE, uses=ACLS, needs=AUTHORIZER)
def patterns(bench: Bench) -> Any:
    """The type of pattern of a filter decides which ACLs of a name it finds.

    Create a literal ACL, one of a prefix of this name, one of the name as prefix, and one of a longer name.
    Describe the name with LITERAL, PREFIXED, ANY and MATCH, which finds all that apply to it.
    """
    name, principal = bench.name("thing"), f"User:{bench.name('user')}"
    _create(
        bench,
        _entry(principal, name),
        _entry(principal, bench.name("th"), resource_pattern_type=PREFIXED),
        _entry(principal, name, resource_pattern_type=PREFIXED),
        _entry(principal, name + "s"),
    )
    types = (LITERAL, PREFIXED, PatternType.ANY, PatternType.MATCH)
    named = [_all_of(principal, resource_name_filter=name, pattern_type_filter=each) for each in types]
    return {each.name: _described(bench, wanted) for each, wanted in zip(types, named, strict=True)}


@chapter.check("ACL-005", SOURCE, uses=ACLS, needs=AUTHORIZER)
def filters(bench: Bench) -> Any:
    """Every field of a filter counts.

    Create two ACLs that differ in each field, and describe with one field of the first at a time.
    """
    name, principal = bench.name("thing"), f"User:{bench.name('user')}"
    deny = Permission.DENY
    first = _entry(principal, name)
    second = _entry(principal, name + "-2", Operation.WRITE, resource_type=GROUP, host=OTHER_HOST, permission_type=deny)
    _create(bench, first, second)
    by = _filter(first)
    names = ("resource_type_filter", "resource_name_filter", "host_filter", "operation", "permission_type")
    return {each: len(_described(bench, _all_of(principal, **{each: by[each]}))) for each in names}


@chapter.check(
    "ACL-006",
    SOURCE,
    uses=ACLS,
    needs=AUTHORIZER,
    allowed=(
        Allowed(path="errors.*", values=("INVALID_REQUEST",), reason="says that the request is wrong, not the server"),
    ),
)
def wrong(bench: Bench) -> Any:
    """ACLs that make no sense are refused.

    Create, in a request each: an empty name, the pattern ANY, the pattern MATCH, the operation ANY, the permission ANY,
    an unknown operation, a cluster of another name, and a principal without a type.
    The errors are those of the release, and nothing is created.
    """
    name, principal = bench.name("thing"), f"User:{bench.name('user')}"
    entries = (
        _entry(principal, ""),
        _entry(principal, name, resource_pattern_type=PatternType.ANY),
        _entry(principal, name, resource_pattern_type=PatternType.MATCH),
        _entry(principal, name, Operation.ANY),
        _entry(principal, name, permission_type=Permission.ANY),
        _entry(principal, name, 99),
        _entry(principal, bench.name("cluster"), Operation.ALTER, resource_type=ResourceType.CLUSTER),
        _entry(bench.name("user"), name),
    )
    return {"errors": [_tried(bench, each) for each in entries], "acls": _described(bench, _all_of(principal))}


def _tried(bench: Bench, entry: Entry) -> list[str]:
    own_acls(bench, entry["principal"])
    body = bench.ask("CreateAcls", at=bench.controller(), creations=[entry])
    return [error_name(each.error_code) for each in body.results]


@chapter.check("ACL-007", SOURCE, uses=ACLS, needs=AUTHORIZER)
def wrong_filters(bench: Bench) -> Any:
    """Filters with unknown values are refused.

    Describe with the type of resource UNKNOWN, then with the operation UNKNOWN, and delete with the latter.
    The broker closes the connection.
    """
    of_nobody = _all_of(f"User:{bench.name('nobody')}")
    kind, operation = {**of_nobody, "resource_type_filter": 0}, {**of_nobody, "operation": 0}
    found = []
    for api, fields in (("DescribeAcls", kind), ("DescribeAcls", operation), ("DeleteAcls", {"filters": [operation]})):
        connection, version = bench.connect(bench.controller()), bench.best(api)
        connection.send(request(api, version, **fields), version)
        found.append(connection.is_closed())
    return {"closed": found}


@chapter.check("ACL-008", "KIP-290", uses={**ACLS, "DescribeAcls": 0}, needs=AUTHORIZER, until="3.9")
def old_description(bench: Bench) -> Any:
    """DescribeAcls 0 has no prefixed ACLs.

    Create a literal and a prefixed ACL, and describe them with version 0.
    Only the literal one is returned.
    """
    name, principal = bench.name("thing"), f"User:{bench.name('user')}"
    _create(bench, _entry(principal, name), _entry(principal, name, resource_pattern_type=PREFIXED))
    return {"acls": _described(bench, _all_of(principal), 0)}


@chapter.check("ACL-009", "KIP-373", uses={**ACLS, "CreateAcls": 3, "DescribeAcls": 3}, needs=AUTHORIZER)
def of_users(bench: Bench) -> Any:
    """Users are resources since version 3.

    Create an ACL of a user with CREATE_TOKENS, and describe it.
    """
    principal = f"User:{bench.name('user')}"
    other = f"User:{bench.name('other')}"
    errors = _create(bench, _entry(principal, other, Operation.CREATE_TOKENS, resource_type=ResourceType.USER))
    return {"errors": errors, "acls": _described(bench, _all_of(principal), 3)}


# What users may do


def _produce(bench: Bench, user: User, topic: Topic) -> str:
    version = bench.best("Produce", 12)  # the last one with names
    data = [{"name": topic.name, "partition_data": [{"index": 0, "records": batch()}]}]
    body = bench.ask_as(user, "Produce", version, topic.leader, acks=-1, timeout_ms=5000, topic_data=data)
    return error_name(body.responses[0].partition_responses[0].error_code)


def _fetch(bench: Bench, user: User, topic: Topic, version: int = 12) -> str:
    fields = fetch_fields(topic, replica_id=-1)
    body = bench.ask_as(user, "Fetch", bench.best("Fetch", version), topic.leader, **fields)
    return error_name(body.error_code or body.responses[0].partitions[0].error_code)


def _metadata(bench: Bench, user: User, name: str) -> str:
    version = bench.best("Metadata", 12)
    body = bench.ask_as(user, "Metadata", version, topics=[{"name": name}], allow_auto_topic_creation=False)
    return error_name(body.topics[0].error_code)


def _rights(bench: Bench, user: User, topic: Topic) -> dict[str, str]:
    return {
        "produce": _produce(bench, user, topic),
        "fetch": _fetch(bench, user, topic),
        "metadata": _metadata(bench, user, topic.name),
    }


TOPIC_USES = {**USES, "Topics": -1, "Metadata": 4, "Produce": 3, "Fetch": 4}


@chapter.check("ACL-020", RULES, uses=TOPIC_USES, needs=USERS)
def without_acls(bench: Bench) -> Any:
    """A user without ACLs may do nothing with a topic.

    Produce, fetch and ask for metadata of a topic.
    The errors are TOPIC_AUTHORIZATION_FAILED.
    """
    return _rights(bench, stranger(bench), bench.topic())


@chapter.check("ACL-021", RULES, uses=TOPIC_USES, needs=USERS)
def write(bench: Bench) -> Any:
    """WRITE allows to produce and to describe, and nothing else.

    Allow a user WRITE on a topic; produce, fetch and ask for metadata.
    """
    user, topic = new_user(bench), bench.topic()
    _create(bench, _entry(user.principal, topic.name, Operation.WRITE))
    return _rights(bench, user, topic)


@chapter.check("ACL-022", RULES, uses=TOPIC_USES, needs=USERS)
def read(bench: Bench) -> Any:
    """READ allows to fetch and to describe, and nothing else.

    Allow a user READ on a topic; produce, fetch and ask for metadata.
    """
    user, topic = new_user(bench), bench.topic()
    _create(bench, _entry(user.principal, topic.name))
    return _rights(bench, user, topic)


@chapter.check("ACL-023", RULES, uses=TOPIC_USES, needs=USERS)
def deny(bench: Bench) -> Any:
    """DENY is stronger than ALLOW.

    Allow a user ALL on a topic, and deny READ; produce, fetch and ask for metadata.
    Only the fetch is refused.
    """
    user, topic = new_user(bench), bench.topic()
    denied = _entry(user.principal, topic.name, permission_type=Permission.DENY)
    _create(bench, _entry(user.principal, topic.name, Operation.ALL), denied)
    return _rights(bench, user, topic)


@chapter.check("ACL-024", RULES, uses=TOPIC_USES, needs=USERS)
def prefixed(bench: Bench) -> Any:
    """A prefixed ACL is about every name that begins with it, a literal one about one name.

    Allow a user ALL on the beginning of a topic's name, once literally and once as a prefix.
    """
    user, other, topic = new_user(bench), new_user(bench, "other"), bench.topic()
    beginning = topic.name[:-2]
    _create(
        bench,
        _entry(user.principal, beginning, Operation.ALL),
        _entry(other.principal, beginning, Operation.ALL, resource_pattern_type=PREFIXED),
    )
    return {"literal": _rights(bench, user, topic), "prefixed": _rights(bench, other, topic)}


@chapter.check("ACL-025", RULES, uses=TOPIC_USES, needs=USERS)
def hosts(bench: Bench) -> Any:
    """An ACL of another host does not count.

    Allow a user ALL on a topic from 192.0.2.1; produce, fetch and ask for metadata from here.
    """
    user, topic = new_user(bench), bench.topic()
    _create(bench, _entry(user.principal, topic.name, Operation.ALL, host=OTHER_HOST))
    return _rights(bench, user, topic)


@chapter.check("ACL-026", RULES, uses=TOPIC_USES, needs=USERS)
def removed(bench: Bench) -> Any:
    """A deleted ACL does not count any more, on an open connection too.

    Allow a user ALL on a topic, and produce, fetch and ask for metadata; delete the ACL, and do it again.
    """
    user, topic = new_user(bench), bench.topic()
    _create(bench, _entry(user.principal, topic.name, Operation.ALL))
    before = _rights(bench, user, topic)
    _delete(bench, _all_of(user.principal))
    return {"before": before, "after": _rights(bench, user, topic)}


@chapter.check("ACL-027", "KIP-290; MetadataRequest", uses={**USES, "Topics": -1, "Metadata": 4}, needs=USERS)
def listed(bench: Bench) -> Any:
    """Metadata of all topics has those that the user may describe.

    Allow a user DESCRIBE on one of two topics, and ask for the metadata of all.
    """
    user, seen, hidden = new_user(bench), bench.topic(), bench.topic()
    _create(bench, _entry(user.principal, seen.name, Operation.DESCRIBE))
    topics = bench.ask_as(user, "Metadata", bench.best("Metadata", 12), topics=None).topics
    names = [each.name for each in topics]
    return {"topics": len(names), "seen": seen.name in names, "hidden": hidden.name in names}


@chapter.check("ACL-028", "KIP-290; MetadataRequest", uses={**USES, "Metadata": 4}, needs=USERS)
def existence(bench: Bench) -> Any:
    """A user without ACLs does not learn which topics exist.

    Ask for the metadata of a topic that exists, and of one that does not.
    Both have the same error.
    """
    user, topic = stranger(bench), bench.topic()
    return {"exists": _metadata(bench, user, topic.name), "missing": _metadata(bench, user, bench.name("missing"))}


@chapter.check("ACL-029", "KIP-516", uses={**TOPIC_USES, "Fetch": 13, "Metadata": 12}, needs=USERS)
def topic_ids(bench: Bench) -> Any:
    """A user without ACLs does not learn names from topic ids.

    Fetch by the id of a topic, and ask for its metadata by the id.
    The errors are those of the release, and Metadata has no name.
    """
    user, topic = stranger(bench), bench.topic()
    topics = [{"name": None, "topic_id": topic.topic_id}]
    found = bench.ask_as(user, "Metadata", 12, topics=topics).topics[0]
    return {
        "fetch": _fetch(bench, user, topic, 18),
        "metadata": error_name(found.error_code),
        "has a name": found.name is not None,
    }


@chapter.check("ACL-030", "KIP-430", uses={**USES, "Topics": -1, "Metadata": 8}, needs=USERS)
def authorized_operations(bench: Bench) -> Any:
    """The authorized operations of a topic are those of the user, with what they imply.

    Allow a user READ and ALTER_CONFIGS on a topic, and ask for its metadata with authorized operations.
    """
    user, topic = new_user(bench), bench.topic()
    _create(bench, *(_entry(user.principal, topic.name, each) for each in (Operation.READ, Operation.ALTER_CONFIGS)))
    fields: dict[str, Any] = {"topics": [{"name": topic.name}], "include_topic_authorized_operations": True}
    bits = bench.ask_as(user, "Metadata", bench.best("Metadata", 12), **fields).topics[0].topic_authorized_operations
    return {"operations": [each.name for each in Operation if bits >> each & 1]}


@chapter.check("ACL-031", RULES, uses={**USES, "CreateTopics": -1, "DeleteTopics": -1}, needs=USERS)
def create_topics(bench: Bench) -> Any:
    """CREATE on a topic's name allows to create it, and DELETE to delete it.

    Create a topic without ACLs; with CREATE; delete it without DELETE, and with it.
    """
    user, name = new_user(bench), bench.name("topic")
    bench.created(name)
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
    version = bench.best("DeleteTopics", 5)

    def create() -> str:
        body = bench.ask_as(user, "CreateTopics", at=bench.controller(), topics=topics, timeout_ms=5000)
        return error_name(body.topics[0].error_code)

    def delete() -> str:
        fields: dict[str, Any] = {"topic_names": [name], "timeout_ms": 5000}
        body = bench.ask_as(user, "DeleteTopics", version, bench.controller(), **fields)
        return error_name(body.responses[0].error_code)

    found = [create()]
    _create(bench, _entry(user.principal, name, Operation.CREATE))
    found.append(create())
    bench.wait_for_topic(name)
    found.append(delete())
    _create(bench, _entry(user.principal, name, Operation.DELETE))
    return {"errors": [*found, delete()]}


@chapter.check("ACL-032", RULES, uses={**USES, "FindCoordinator": 0, "OffsetFetch": 1, "OffsetCommit": 2}, needs=USERS)
def groups(bench: Bench) -> Any:
    """READ on a group allows to use it, and offsets of topics need rights on these.

    Find a group's coordinator, commit and fetch an offset of a topic: without ACLs, with READ on the group, and with
    READ on the topic too.
    """
    user, topic, group = new_user(bench), bench.topic(), bench.group()
    at = bench.coordinator(group)

    def attempt() -> list[str]:
        find = bench.ask_as(user, "FindCoordinator", bench.best("FindCoordinator", 3), key=group, key_type=0)
        partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        topics = [{"name": topic.name, "partitions": [partition]}]
        member = {"generation_id_or_member_epoch": -1, "member_id": ""}
        version = bench.best("OffsetCommit", 7)
        commit = bench.ask_as(user, "OffsetCommit", version, at, group_id=group, topics=topics, **member)
        wanted = [{"name": topic.name, "partition_indexes": [0]}]
        fetched = bench.ask_as(user, "OffsetFetch", bench.best("OffsetFetch", 7), at, group_id=group, topics=wanted)
        offsets = [each for part in fetched.topics for each in part.partitions]
        return [
            error_name(find.error_code),
            error_name(commit.topics[0].partitions[0].error_code),
            error_name(fetched.error_code or (offsets[0].error_code if offsets else 0)),
        ]

    found = [attempt()]
    _create(bench, _entry(user.principal, group, resource_type=GROUP))
    found.append(bench.loaded(attempt))
    _create(bench, _entry(user.principal, topic.name))
    return {"errors": [*found, bench.loaded(attempt)]}


@chapter.check(
    "ACL-033", "KIP-98; KafkaApis.handleInitProducerIdRequest", uses={**USES, "InitProducerId": 1}, needs=USERS
)
def transactional_ids(bench: Bench) -> Any:
    """WRITE on a transactional id allows to use it.

    Send InitProducerId with a transactional id without ACLs, and with WRITE on it.
    """
    user, name = new_user(bench), bench.name("txn")
    at, version = bench.coordinator(name, 1), bench.best("InitProducerId", 4)

    def attempt() -> str:
        fields: dict[str, Any] = {"transactional_id": name, "transaction_timeout_ms": 10_000}
        return error_name(bench.ask_as(user, "InitProducerId", version, at, **fields).error_code)

    found = [attempt()]
    _create(bench, _entry(user.principal, name, Operation.WRITE, resource_type=TXN))
    return {"errors": [*found, bench.loaded(attempt)]}


@chapter.check("ACL-034", "KIP-679", uses={**USES, "Topics": -1, "InitProducerId": 1}, needs=USERS)
def idempotent(bench: Bench) -> Any:
    """WRITE on any topic allows to get a producer id.

    Send InitProducerId without a transactional id: without ACLs, and with WRITE on a topic.
    """
    user, version = new_user(bench), bench.best("InitProducerId", 4)

    def attempt() -> str:
        fields: dict[str, Any] = {"transactional_id": None, "transaction_timeout_ms": 10_000}
        return error_name(bench.ask_as(user, "InitProducerId", version, **fields).error_code)

    found = [attempt()]
    _create(bench, _entry(user.principal, bench.name("topic"), Operation.WRITE))
    return {"errors": [*found, attempt()]}


@chapter.check(
    "ACL-035", RULES, uses={**USES, "Topics": -1, "DescribeConfigs": 1, "IncrementalAlterConfigs": 0}, needs=USERS
)
def configs(bench: Bench) -> Any:
    """ALTER_CONFIGS on a topic allows to alter its configs, and implies DESCRIBE_CONFIGS.

    Describe and alter (validated only) a topic's configs: without ACLs, with DESCRIBE_CONFIGS, with ALTER_CONFIGS.
    """
    user, other, topic = new_user(bench), new_user(bench, "other"), bench.topic()

    def attempt(by: User) -> list[str]:
        resource = {"resource_type": 2, "resource_name": topic.name}
        described = bench.ask_as(
            by, "DescribeConfigs", resources=[{**resource, "configuration_keys": ["retention.ms"]}]
        )
        change = {"name": "retention.ms", "config_operation": 0, "value": "1234567"}
        fields: dict[str, Any] = {"resources": [{**resource, "configs": [change]}], "validate_only": True}
        altered = bench.ask_as(by, "IncrementalAlterConfigs", at=bench.controller(), **fields)
        return [error_name(described.results[0].error_code), error_name(altered.responses[0].error_code)]

    found = [attempt(user)]
    _create(bench, _entry(user.principal, topic.name, Operation.DESCRIBE_CONFIGS))
    _create(bench, _entry(other.principal, topic.name, Operation.ALTER_CONFIGS))
    return {"errors": [*found, attempt(user), attempt(other)]}
