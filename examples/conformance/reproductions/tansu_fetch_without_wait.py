"""Tansu 0.6.0 responds to a Fetch with max_wait_ms 0 without topics, so a consumer that does not wait reads nothing.

Kafka returns the records that it has. FetchService::fetch reads only `while` the wait time lasts, so not once; Nisshi
0.8.1 has the same loop. pip install confluent-kafka; python tansu_fetch_without_wait.py HOST:PORT (FETCH-V04).
"""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

broker = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(broker)
admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
producer = Producer(broker)
producer.produce("orders", b"one", partition=0)
producer.flush()
for wait_ms in (100, 0):
    consumer = Consumer({**broker, "group.id": "readers", "fetch.wait.max.ms": wait_ms})
    consumer.assign([TopicPartition("orders", 0, 0)])
    message = consumer.poll(5)
    print(f"fetch.wait.max.ms={wait_ms}: {message and message.value()}")
