"""Topics as tables: Arrow datasets that DuckDB, Polars, DataFusion and Ibis query, with filters pushed down.

TopicDataset    all partitions of a topic as a pyarrow.dataset.Dataset: kwire.open(...).topic(name)
matching        which offsets and times a filter can match, decided by Arrow
"""

from kwire.extras import needing

with needing("topics as tables", extra="sql"):
    from kwire.sql.dataset import TopicDataset

__all__ = ["TopicDataset"]
