"""Options as users gave them: without those that Spark adds, and with those that it leaves out. Standard library only.

    a stream that is written    has queryName and checkpointLocation, which are Spark's
    CREATE TABLE ... USING      gives a source the table's properties: owner, provider, location, comment, what the user
                                put there, and each option twice, as NAME and as option.NAME
    a table that is read        gives a source its schema and none of its options

So the schema of a table keeps its options, as the comment of the first column, and readers find them there.
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

__all__ = ["asked_options", "own_options", "schema_ddl"]

SPARKS = ("queryname", "checkpointlocation")
TABLE_MARKS = ("provider", "owner")  # Spark sets both on every table
COMMENT = "options of the table: "
READABLE = "/:,.*-_[]{}"  # not encoded; quotes and backslashes are
SECRET = re.compile(r"password|secret|token|jaas|credential|connection_string|kwargs|(^storage\.|\.|_)key$")


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that the user gave, their names in lower case."""
    given = {key.lower(): value for key, value in options.items()}
    if is_table(given):
        given = {key: value for key, value in given.items() if key == "path" or f"option.{key}" in given}
        if given.get("path", "").startswith("file:/"):
            given["path"] = "/" + given["path"].removeprefix("file:").lstrip("/")  # Spark's URL for a local path
    return {key: value for key, value in given.items() if key not in SPARKS}


def is_table(given: Mapping[str, str]) -> bool:
    """Whether these are the properties of a table. given: names in lower case."""
    return all(name in given for name in TABLE_MARKS)


def schema_ddl(types: Mapping[str, str], options: Mapping[str, str]) -> str:
    """The schema of a query in Spark's DDL, `offset bigint, partition int`; that of a table keeps its options.

    types: of the columns by name. Raises OptionError for a secret, which everybody could read.
    """
    columns = [f"{name} {kind}" for name, kind in types.items()]
    if is_table({key.lower(): value for key, value in options.items()}):
        own = own_options(options)
        for name in own:
            if SECRET.search(name):
                raise OptionError(
                    f"Option '{name}' has no place in a table: who sees the table's schema, or a file made from it, "
                    f"could read it. Set it in each query: spark.read.option('{name}', ...).table(...), or "
                    f"SELECT ... FROM t WITH (`{name}` '...')"
                )
        columns[0] += f" COMMENT '{COMMENT}{urlencode(own, safe=READABLE)}'"
    return ", ".join(columns)


def asked_options(options: Mapping[str, str], schema: StructType | None = None) -> dict[str, str]:
    """The options of a query: those of its table, and over them its own.

    schema: as the reader got it; None for a query that writes. Raises OptionError where there are none at all.
    """
    of_table: dict[str, str] = {}
    if schema is not None and schema.fields:
        mark, found, kept = schema.fields[0].metadata.get("comment", "").partition(COMMENT)
        if found and not mark:
            of_table = dict(parse_qsl(kept, keep_blank_values=True))
    asked = of_table | own_options(options)
    if not asked:
        how = (
            "create it without a list of columns, and its options are kept; or set them in the query: "
            "spark.read.option(...).table('t'), SELECT ... FROM t WITH (`path` '...')"
            if schema is not None
            else "use df.writeTo('t').option(...).append(), or INSERT INTO t WITH (`topic` '...') SELECT ..."
        )
        raise OptionError(f"The query has no options. Spark gives a Python source none of those of a table: {how}")
    return asked
