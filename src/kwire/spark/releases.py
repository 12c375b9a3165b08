"""Supported releases of Spark.

Spark 4.0 imports all pyspark_* packages at the first look-up of a Python data source, and finds no source at all if one
package fails. The formats are therefore found in Spark 4.0, and raise an error when they are used.
"""

from __future__ import annotations

import pyspark
from pyspark.sql.datasource import DataSource

from kwire.errors import OptionError

__all__ = ["FIRST_RELEASE", "is_supported", "unsupported_source"]

FIRST_RELEASE = (4, 1)


def is_supported(version: str = pyspark.__version__) -> bool:
    """Return whether a release of Spark supports Arrow batches in data sources, for reading, writing and streams."""
    return tuple(int(part) for part in version.split(".")[:2]) >= FIRST_RELEASE


def unsupported_source(name: str) -> type[DataSource]:
    """Return a data source of that name that raises OptionError when it is used."""

    class UnsupportedSource(DataSource):
        def __init__(self, options: dict[str, str]) -> None:
            raise OptionError(f"{name} requires Spark 4.1 or later; this is Spark {pyspark.__version__}")

        @classmethod
        def name(cls) -> str:
            return name

    return UnsupportedSource
