"""Topics as lazy frames of Polars: kwire.polars.scan("logs/data", "orders").filter(...).collect()."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import kwire
from kwire.errors import MissingExtra

if TYPE_CHECKING:
    import polars as pl

    from kwire.log.reading.runs import Isolation

__all__ = ["scan"]


def scan(
    source: str | os.PathLike[str],
    topic: str,
    *,
    isolation: Isolation = "read_committed",
    values: Any = None,
    **settings: Any,
) -> pl.LazyFrame:
    """Return a topic as a lazy frame; filters and columns are pushed down.

    source, settings: as for kwire.open. isolation, values: as for kwire.sql.TopicDataset.
    The offsets are those of now. Raises LogError, BrokerError, ConnectionFailed; collecting raises what reading does.
    """
    try:
        import polars as pl
    except ModuleNotFoundError:
        raise MissingExtra("kwire.polars: needs polars, which is not installed; pip install polars") from None
    return pl.scan_pyarrow_dataset(kwire.open(source, **settings).topic(topic, isolation=isolation, values=values))
