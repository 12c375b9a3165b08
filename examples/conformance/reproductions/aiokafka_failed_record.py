"""aiokafka 0.14.0 commits a transaction whose record the broker refused, and reports no error (TRANSACT-010).

Kafka's client and librdkafka raise an error from the commit, and abort. pip install aiokafka kwire; prints "committed".
"""

import asyncio

from aiokafka import AIOKafkaProducer

from kwire.broker import Broker


async def main(bootstrap: str) -> None:
    client = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="t", max_request_size=4 << 20)
    async with client as producer:
        await producer.begin_transaction()
        future = await producer.send("orders", b"x" * 2_000_000, partition=0)  # refused with MESSAGE_TOO_LARGE
        await producer.commit_transaction()
        print("committed, though the record failed:", repr(future.exception()))


with Broker(message_max_bytes=1_000_000) as broker:
    broker.create_topic("orders")
    asyncio.run(main(broker.bootstrap_servers))
    print("records in the log:", len(broker.records("orders")))
