"""Which releases of Spark the formats work with.

Spark 4.0 imports all pyspark_* packages at the first look-up of any Python data source, and finds none where one cannot
be imported. So there the formats are found, and refuse to work.
"""

from __future__ import annotations

import pyspark
from pyspark.sql.datasource import DataSource

from kwire.errors import OptionError

__all__ = ["FIRST_RELEASE", "is_supported", "refused_source"]

FIRST_RELEASE = (4, 1)


def is_supported(version: str = pyspark.__version__) -> bool:
    """Whether this release of Spark has what the formats need: Arrow batches in both directions, for streams too."""
    return tuple(int(part) for part in version.split(".")[:2]) >= FIRST_RELEASE


def refused_source(name: str) -> type[DataSource]:
    """A data source of that name, whose every use raises OptionError."""

    class RefusedSource(DataSource):
        def __init__(self, options: dict[str, str]) -> None:
            raise OptionError(f"{name} needs Spark 4.1 or later, and this is Spark {pyspark.__version__}")

        @classmethod
        def name(cls) -> str:
            return name

    return RefusedSource
