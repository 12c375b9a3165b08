"""Whether the packages pyspark_kwire_* give Spark the formats, which it finds by name in every program.

KWIRE_SPARK_FORMATS=0    they define nothing, and import nothing else of kwire
"""

from __future__ import annotations

import os

from kwire.errors import OptionError

__all__ = ["are_registered"]

VARIABLE = "KWIRE_SPARK_FORMATS"


def are_registered() -> bool:
    """Return whether Spark is to find the formats. Raises OptionError for another value than 0 and 1."""
    chosen = os.environ.get(VARIABLE, "1")
    if chosen not in ("0", "1"):
        raise OptionError(f"{VARIABLE}={chosen}: expected 0, for no formats in Spark, or 1")
    return chosen == "1"
