"""Start a cluster from the log directories of its brokers when its controllers are gone."""

from kwire.maintenance.adopt.apply import apply_adoption
from kwire.maintenance.adopt.plan import AdoptedTopic, Adoption, NewController, plan_adoption
from kwire.maintenance.adopt.replicas import AdoptedPartition

__all__ = ["AdoptedPartition", "AdoptedTopic", "Adoption", "NewController", "apply_adoption", "plan_adoption"]
