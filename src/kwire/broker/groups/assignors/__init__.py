"""Server-side assignors of the consumer protocol, by name."""

from kwire.broker.groups.assignors.range_assignor import assign_ranges
from kwire.broker.groups.assignors.specification import Assignor, GroupToAssign, MemberToAssign
from kwire.broker.groups.assignors.uniform_assignor import assign_uniformly

__all__ = ["Assignor", "GroupToAssign", "MemberToAssign", "assign_ranges", "assign_uniformly"]
