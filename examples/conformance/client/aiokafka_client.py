"""aiokafka under `kwire conformance client`: pip install aiokafka[all]."""

import asyncio
import json
import os
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

CODECS = {"none": None}


def say(**line):
    print(json.dumps(line), flush=True)


def options(task, **names):
    """Return the settings that aiokafka has, by its names: {its name: (Kafka's name, function)}."""
    given = task["settings"]
    return {name: make(given[key]) for name, (key, make) in names.items() if key in given}


def common(task):
    security = options(
        task,
        request_timeout_ms=("request.timeout.ms", int),
        retry_backoff_ms=("retry.backoff.ms", int),
        metadata_max_age_ms=("metadata.max.age.ms", int),
        security_protocol=("security.protocol", str),
        sasl_mechanism=("sasl.mechanism", str),
        sasl_plain_username=("sasl.username", str),
        sasl_plain_password=("sasl.password", str),
    )
    return {"bootstrap_servers": task["bootstrap"], **security}


def producer(task, **more):
    return AIOKafkaProducer(
        **common(task),
        **options(
            task,
            acks=("acks", lambda text: text if text == "all" else int(text)),
            enable_idempotence=("enable.idempotence", lambda text: text == "true"),
            compression_type=("compression.type", lambda text: CODECS.get(text, text)),
            linger_ms=("linger.ms", int),
            max_request_size=("max.request.size", int),
        ),
        **more,
    )


async def send(client, task, record):
    await asyncio.sleep(record.get("wait_ms", 0) / 1000)
    value = record["value"]
    return await client.send(
        task["topic"],
        None if value is None else value.encode() * record.get("repeat", 1),
        key=None if record["key"] is None else record["key"].encode(),
        partition=record["partition"],
        headers=[(k, None if v is None else v.encode()) for k, v in record.get("headers", [])],
    )


async def report(number, future):
    try:
        done = await future
        say(acked=number, offset=done.offset if done else -1)
    except Exception as error:
        say(failed=number, error=f"{type(error).__name__}: {error}")


async def produce(task):
    async with producer(task) as client:
        sent = [await send(client, task, record) for record in task["records"]]
        await asyncio.gather(*(report(i, future) for i, future in enumerate(sent)))


async def transact(task):
    number = 0
    async with producer(task, transactional_id=task["transactional_id"]) as client:
        for each in task["transactions"]:
            await client.begin_transaction()
            for record in each["records"]:
                await report(number, await send(client, task, record))
                number += 1
            if each["offsets"]:
                at = TopicPartition(task["topic"], each["offsets"]["partition"])
                await client.send_offsets_to_transaction({at: each["offsets"]["offset"]}, each["offsets"]["group"])
            await (client.commit_transaction() if each["end"] == "commit" else client.abort_transaction())
            say(ended=each["end"])


async def consume(task):
    client = AIOKafkaConsumer(
        **common(task),
        group_id=task["group"],
        **options(
            task,
            auto_offset_reset=("auto.offset.reset", str),
            isolation_level=("isolation.level", str),
            fetch_max_bytes=("fetch.max.bytes", int),
            max_partition_fetch_bytes=("max.partition.fetch.bytes", int),
            fetch_max_wait_ms=("fetch.max.wait.ms", int),
            session_timeout_ms=("session.timeout.ms", int),
            heartbeat_interval_ms=("heartbeat.interval.ms", int),
            rebalance_timeout_ms=("rebalance.timeout.ms", int),
            check_crcs=("check.crcs", lambda text: text == "true"),
            group_instance_id=("group.instance.id", str),
        ),
        enable_auto_commit=False,
    )
    if task["group"]:
        client.subscribe([task["topic"]])
    else:
        client.assign([TopicPartition(task["topic"], each) for each in task["partitions"]])
    text = lambda data: None if data is None else data.decode()  # noqa: E731
    async with client:
        if task["offset"] is not None:
            client.seek(TopicPartition(task["topic"], task["partitions"][0]), task["offset"])
        left = task["count"]
        while batches := await client.getmany(timeout_ms=300 if left <= 0 else 10_000):
            for each in (record for records in batches.values() for record in records):
                headers = [[k, text(v)] for k, v in each.headers]
                say(partition=each.partition, offset=each.offset, timestamp=each.timestamp, headers=headers,
                    key=text(each.key), value=text(each.value))  # fmt: skip
                left -= 1
        if task["commit"]:
            await client.commit()
            say(committed=True)


async def main(text):
    task = json.loads(text)
    try:
        await {"produce": produce, "consume": consume, "transact": transact}[task["do"]](task)
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}")
    say(done=task["id"])


if __name__ == "__main__":
    for line in [os.environ["KWIRE_TASK"]] if "KWIRE_TASK" in os.environ else sys.stdin:
        asyncio.run(main(line))
