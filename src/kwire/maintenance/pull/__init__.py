"""Copy topics of a running cluster exactly, over the network."""

from kwire.maintenance.pull.manifest import MANIFEST, Event, Manifest, PartitionEntry, SegmentEntry, TopicEntry
from kwire.maintenance.pull.run import PullOptions, PullResult, pull

__all__ = [
    "MANIFEST",
    "Event",
    "Manifest",
    "PartitionEntry",
    "PullOptions",
    "PullResult",
    "SegmentEntry",
    "TopicEntry",
    "pull",
]
