"""Server-side assignors of consumer groups and share groups."""

from kwire.broker.groups.assignors.range_assignor import assign_ranges
from kwire.broker.groups.assignors.simple_assignor import assign_simply
from kwire.broker.groups.assignors.specification import Assignor, GroupToAssign, MemberToAssign
from kwire.broker.groups.assignors.uniform_assignor import assign_uniformly

__all__ = ["Assignor", "GroupToAssign", "MemberToAssign", "assign_ranges", "assign_simply", "assign_uniformly"]
