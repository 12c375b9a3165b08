"""Options as users set them: without those that Spark adds, and with those that Spark drops. Standard library only.

    a streaming write           adds queryName and checkpointLocation, which are Spark's own
    CREATE TABLE ... USING      passes the table's properties: owner, provider, location, comment, TBLPROPERTIES, and
                                each option twice, as NAME and as option.NAME
    reading a table             passes the table's schema and none of its options

The schema of a table therefore stores its options, in the comment of the first column, where readers find them.
Source: Spark 4.1 to 4.3, DataStreamWriter.queryName, V2SessionCatalog.createTable, PythonDataSourceV2.getTable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from kwire.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["effective_options", "schema_ddl", "user_options"]

SPARK_OPTIONS = ("queryname", "checkpointlocation")
TABLE_PROPERTIES = ("provider", "owner")  # Spark sets both on every table
COMMENT = "options of the table: "
UNENCODED = "/:,.*-_[]{}"  # in the comment; quotes and backslashes are encoded
SECRET = re.compile(r"password|secret|token|jaas|credential|connection_string|kwargs|(^storage\.|\.|_)key$")


def user_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that the user set, with names in lower case."""
    given = {key.lower(): value for key, value in options.items()}
    if _is_table(given):
        given = {key: value for key, value in given.items() if key == "path" or f"option.{key}" in given}
        if given.get("path", "").startswith("file:/"):
            given["path"] = "/" + given["path"].removeprefix("file:").lstrip("/")  # Spark's URL for a local path
    return {key: value for key, value in given.items() if key not in SPARK_OPTIONS}


def _is_table(given: Mapping[str, str]) -> bool:
    return all(name in given for name in TABLE_PROPERTIES)


def schema_ddl(types: Mapping[str, str], options: Mapping[str, str]) -> str:
    """Render a schema in Spark's DDL, `offset bigint, partition int`; for a table, with its options in a comment.

    types: column types by name. Raises OptionError for a secret among a table's options.
    """
    columns = [f"{name} {kind}" for name, kind in types.items()]
    if _is_table({key.lower(): value for key, value in options.items()}):
        own = user_options(options)
        for name in own:
            if SECRET.search(name):
                raise OptionError(
                    f"Option '{name}' cannot be stored in a table, where everyone who can see the table's schema can "
                    f"read it; set it in each query: spark.read.option('{name}', ...).table(...), or "
                    f"SELECT ... FROM t WITH (`{name}` '...')"
                )
        columns[0] += f" COMMENT '{COMMENT}{urlencode(own, safe=UNENCODED)}'"
    return ", ".join(columns)


def effective_options(options: Mapping[str, str], schema: StructType | None = None) -> dict[str, str]:
    """The options of a query: its own, and those of its table that it does not override.

    schema: as passed to the reader; None for a write. Raises OptionError for a query without options.
    """
    of_table: dict[str, str] = {}
    if schema is not None and schema.fields:
        before, found, stored = schema.fields[0].metadata.get("comment", "").partition(COMMENT)
        if found and not before:
            of_table = dict(parse_qsl(stored, keep_blank_values=True))
    effective = of_table | user_options(options)
    if not effective:
        remedy = (
            "create the table without a list of columns, which stores its options; or set them in the query: "
            "spark.read.option(...).table('t'), SELECT ... FROM t WITH (`path` '...')"
            if schema is not None
            else "use df.writeTo('t').option(...).append(), or INSERT INTO t WITH (`topic` '...') SELECT ..."
        )
        raise OptionError(f"The query has no options. Spark passes none of a table's to a Python source: {remedy}")
    return effective
