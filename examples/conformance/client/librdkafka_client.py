"""librdkafka under `kwire conformance client`: pip install confluent-kafka."""

import json
import os
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

IGNORED = {"max.block.ms", "default.api.timeout.ms", "rebalance.timeout.ms", "sasl.jaas.config"}
NAMES = {"max.request.size": "message.max.bytes", "fetch.max.wait.ms": "fetch.wait.max.ms"}
NOT_PRODUCER = {"session.timeout.ms", "heartbeat.interval.ms"}
PRODUCER = {"acks", "linger.ms", "enable.idempotence", "delivery.timeout.ms", "request.timeout.ms", "compression.type",
            "retry.backoff.ms", "retry.backoff.max.ms", "message.max.bytes"}  # fmt: skip


def say(**line):
    print(json.dumps(line), flush=True)


def settings(task, consumer):
    """Return the settings by librdkafka's names, without those of the other side."""
    found = {"bootstrap.servers": task["bootstrap"], "log_level": 0}
    for name, value in task["settings"].items():
        name = NAMES.get(name, name)
        is_other = name in PRODUCER if consumer else name.startswith(("fetch.", "auto.", "enable.auto", "isolation",
            "check.", "group.", "max.partition", "session", "heartbeat"))  # fmt: skip
        if name not in IGNORED and not is_other and not (name == "auto.offset.reset" and value == "none"):
            found[name] = value
    found["socket.timeout.ms"] = task["settings"]["request.timeout.ms"]  # of one response, in both
    if consumer:
        found["enable.partition.eof"] = "true"
        if task["settings"]["auto.offset.reset"] == "none":
            found["auto.offset.reset"] = "error"
        if int(found.get("max.partition.fetch.bytes", 0) or 0):
            found["fetch.message.max.bytes"] = found.pop("max.partition.fetch.bytes")
        if "fetch.max.bytes" in found:
            found["message.max.bytes"] = found["fetch.max.bytes"]
    return found


def send(client, task, records, first=0):
    for number, record in enumerate(records, first):
        client.poll(record.get("wait_ms", 0) / 1000)

        def report(error, message, number=number):
            say(failed=number, error=str(error)) if error else say(acked=number, offset=message.offset())

        value = record["value"]
        client.produce(
            task["topic"],
            None if value is None else value.encode() * record.get("repeat", 1),
            record["key"],
            record["partition"],
            on_delivery=report,
            headers=[(k, v) for k, v in record.get("headers", [])],
        )


def produce(task):
    client = Producer(settings(task, consumer=False))
    send(client, task, task["records"])
    client.flush(15)


def transact(task):
    client = Producer(settings(task, consumer=False) | {"transactional.id": task["transactional_id"]})
    client.init_transactions(8)
    number = 0
    for each in task["transactions"]:
        client.begin_transaction()
        send(client, task, each["records"], number)
        number += len(each["records"])
        client.flush(10)
        if each["offsets"]:
            member = Consumer({"bootstrap.servers": task["bootstrap"], "group.id": each["offsets"]["group"]})
            at = TopicPartition(task["topic"], each["offsets"]["partition"], each["offsets"]["offset"])
            client.send_offsets_to_transaction([at], member.consumer_group_metadata(), 8)
            member.close()
        client.commit_transaction(8) if each["end"] == "commit" else client.abort_transaction(8)
        say(ended=each["end"])


def consume(task):
    client = Consumer(settings(task, consumer=True) | {"group.id": task["group"] or "none"})
    start = -2 if task["offset"] is None else task["offset"]
    if task["group"]:
        client.subscribe([task["topic"]])
    else:
        client.assign([TopicPartition(task["topic"], each, start) for each in task["partitions"]])
    text = lambda data: None if data is None else data.decode()  # noqa: E731
    left, quiet_since = task["count"], time.monotonic()
    while left > 0 or time.monotonic() - quiet_since < 0.3:
        each = client.poll(0.1)
        if each is None or (each.error() and each.error().code() == KafkaError._PARTITION_EOF):
            continue
        if each.error():
            say(error=str(each.error()))
            break
        headers = [[k, text(v)] for k, v in each.headers() or []]
        say(partition=each.partition(), offset=each.offset(), timestamp=each.timestamp()[1], headers=headers,
            key=text(each.key()), value=text(each.value()))  # fmt: skip
        left, quiet_since = left - 1, time.monotonic()
    if task["commit"] and left <= 0:
        client.commit(asynchronous=False)
        say(committed=True)
    client.close()


for line in [os.environ["KWIRE_TASK"]] if "KWIRE_TASK" in os.environ else sys.stdin:
    task = json.loads(line)
    try:
        {"produce": produce, "consume": consume, "transact": transact}[task["do"]](task)
    except KafkaException as error:
        say(error=str(error))
    say(done=task["id"])
