"""Tansu 0.6.0 responds to a Metadata request with an empty list of topics with all topics (METADATA-002).

Since version 1, null selects all topics and an empty list none (KIP-4). The storage treats both as null, which Nisshi
0.8.1 does too (`Some(topics) if !topics.is_empty()`). pip install kwire; python tansu_empty_topic_list.py HOST:PORT
"""

import sys

from kwire.client import Client
from kwire.messages import CreateTopicsRequest, MetadataRequest, MetadataResponse

with Client(sys.argv[1]) as client:
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    client.request(CreateTopicsRequest(topics=[topic]))
    found = client.request(MetadataRequest(topics=[]), MetadataResponse).topics
    print("topics for an empty list:", [each.name for each in found])
