"""Tansu 0.6.0 lets a consumer with isolation.level=read_committed read the records of an aborted transaction (TXN-002).

Kafka lists aborted transactions in its Fetch response. Tansu's list is always empty, and so is that of Nisshi 0.8.1:
Storage::aborted_transactions. pip install confluent-kafka; python tansu_aborted_records.py HOST:PORT
"""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

broker = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(broker)
admin.create_topics([NewTopic("payments", 1, 1)])["payments"].result()
producer = Producer({**broker, "transactional.id": "payer"})
producer.init_transactions()
producer.begin_transaction()
producer.produce("payments", b"aborted", partition=0)
producer.flush()
producer.abort_transaction()
consumer = Consumer({**broker, "group.id": "readers", "isolation.level": "read_committed"})
consumer.assign([TopicPartition("payments", 0, 0)])
message = consumer.poll(5)
print("read_committed:", message and message.value())
