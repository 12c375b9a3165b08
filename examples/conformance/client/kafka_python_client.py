"""kafka-python under `kwire conformance client`: pip install kafka-python."""

import json
import os
import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

NAMES = {"sasl.username": "sasl_plain_username", "sasl.password": "sasl_plain_password"}


def say(**line):
    print(json.dumps(line), flush=True)


def settings(task, client):
    """Return the settings that a class has, by its names."""
    found = {"bootstrap_servers": task["bootstrap"]}
    for key, value in task["settings"].items():
        name = NAMES.get(key, key.replace(".", "_"))
        if name in client.DEFAULT_CONFIG:
            is_number = value.lstrip("-").isdigit()
            found[name] = value == "true" if value in ("true", "false") else int(value) if is_number else value
    if found.get("compression_type") == "none":
        del found["compression_type"]
    return found


def send(client, task, records, first=0):
    sent = []
    for number, record in enumerate(records, first):
        time.sleep(record.get("wait_ms", 0) / 1000)
        value, key = record["value"], record["key"]
        try:
            future = client.send(
                task["topic"],
                None if value is None else value.encode() * record.get("repeat", 1),
                None if key is None else key.encode(),
                partition=record["partition"],
                headers=[(k, None if v is None else v.encode()) for k, v in record.get("headers", [])],
            )
            sent.append((number, future))
        except Exception as error:
            say(failed=number, error=repr(error))
    for number, future in sent:
        try:
            say(acked=number, offset=future.get(12).offset)
        except Exception as error:
            say(failed=number, error=repr(error))


def produce(task):
    client = KafkaProducer(**settings(task, KafkaProducer))
    send(client, task, task["records"])
    client.close(1)


def transact(task):
    client = KafkaProducer(**settings(task, KafkaProducer) | {"transactional_id": task["transactional_id"]})
    client.init_transactions()
    number = 0
    for each in task["transactions"]:
        client.begin_transaction()
        send(client, task, each["records"], number)
        number += len(each["records"])
        if each["offsets"]:
            at = TopicPartition(task["topic"], each["offsets"]["partition"])
            offset = OffsetAndMetadata(each["offsets"]["offset"], "", -1)
            client.send_offsets_to_transaction({at: offset}, each["offsets"]["group"])
        client.commit_transaction() if each["end"] == "commit" else client.abort_transaction()
        say(ended=each["end"])
    client.close(1)


def consume(task):
    client = KafkaConsumer(**settings(task, KafkaConsumer) | {"group_id": task["group"]})
    if task["group"]:
        client.subscribe([task["topic"]])
    else:
        client.assign([TopicPartition(task["topic"], each) for each in task["partitions"]])
    if task["offset"] is not None:
        client.seek(TopicPartition(task["topic"], task["partitions"][0]), task["offset"])
    text = lambda data: None if data is None else data.decode()  # noqa: E731
    left, quiet_since = task["count"], time.monotonic()
    while left > 0 or time.monotonic() - quiet_since < 0.3:
        for each in (record for batch in client.poll(100).values() for record in batch):
            headers = [[k, text(v)] for k, v in each.headers]
            say(partition=each.partition, offset=each.offset, timestamp=each.timestamp, headers=headers,
                key=text(each.key), value=text(each.value))  # fmt: skip
            left, quiet_since = left - 1, time.monotonic()
    if task["commit"]:
        client.commit()
        say(committed=True)
    client.close(timeout_ms=1000)


for line in [os.environ["KWIRE_TASK"]] if "KWIRE_TASK" in os.environ else sys.stdin:
    task = json.loads(line)
    try:
        {"produce": produce, "consume": consume, "transact": transact}[task["do"]](task)
    except Exception as error:
        say(error=repr(error))
    say(done=task["id"])
