"""A proxy before a real Kafka cluster, with the faults, the request log and the control of the embedded broker.

tap          Tap: starts and stops it
listeners    a port for each node
connection   one client's connection: what is passed on, held, changed
frames       streams of frames
requests     what a request is, from its first bytes
responses    responses that are read and changed
addresses    where responses have addresses of nodes
reading      requests that are decoded, for faults and the request log
topics       topics and fetch sessions, seen in passing
recording    capture files of what clients send and receive
replay       Replay: responds from a recording
matching     requests matched with those of a recording
fetches      what the fetches of a recording found
runner       an event loop in a thread
settings     addresses and TLS
control      what can be asked for over HTTP
shared       what connections share
"""

from __future__ import annotations

from kwire.tap.matching import Mismatch
from kwire.tap.replay import Replay
from kwire.tap.tap import Tap, TapNode

__all__ = ["Mismatch", "Replay", "Tap", "TapNode"]
