"""Topics in a DuckDB connection of one's own.

kwire.duckdb.attach(connection, "kafka://localhost:9092", "live")
connection.sql("SELECT count(*) FROM live.orders")
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import kwire
from kwire.sql.session import Attached, Session

if TYPE_CHECKING:
    import duckdb

    from kwire.log.reading.runs import Isolation
    from kwire.sql.session import ValuesOf

__all__ = ["attach"]


def attach(
    connection: duckdb.DuckDBPyConnection,
    source: str | os.PathLike[str],
    name: str,
    *,
    isolation: Isolation = "read_committed",
    values: ValuesOf | None = None,
    **settings: Any,
) -> Attached:
    """Create a schema whose views are the topics of a source, and the state of its cluster.

    source, settings: as for kwire.open. name: of the schema. isolation: as for kwire.sql.TopicDataset.
    values: returns how a topic is decoded, such as `lambda topic, logs: registry_columns(registry, topic)`.
    The views have the offsets of now; `refresh()` of the result gives them newer ones.
    Topics that differ in case only, which SQL does not see, have no view: a warning names them.
    Raises OptionError for a schema that exists; LogError, BrokerError, ConnectionFailed.
    """
    session = Session(connection)
    attached = Attached(logs=kwire.open(source, **settings), schema=name, isolation=isolation, values=values)
    session.attach(attached)
    attached.refresh = session.register_all
    session.register_all()
    return attached
