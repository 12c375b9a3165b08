"""Queries written by hand, in the SQL that DuckDB, Spark and Sail have in common.

`topic` has the columns of a topic, and `t` is a view of it with short names, text and sizes. Names in double quotes are
in backquotes for Spark.
"""

from __future__ import annotations

__all__ = ["QUERIES", "VIEWS", "of_dialect"]

END = 600  # of the offsets of partition 0: tiered storage has no active segment
PART = f'partition = 0 AND "offset" < {END}'
COLUMNS = (
    '"offset" AS place, timestamp AS ts, {us} AS us, {text} AS k, md5(value) AS digest, octet_length(value) AS size, '
    "topic AS name, CASE WHEN headers IS NULL THEN 0 ELSE {length}(headers) END AS n"
)
VIEW = f"CREATE OR REPLACE TEMPORARY VIEW t AS SELECT {COLUMNS} FROM topic WHERE {PART}"
VIEWS = {
    "duckdb": VIEW.format(us="epoch_us(timestamp)", text="decode(key)", length="len"),
    "spark": VIEW.format(us="unix_micros(timestamp)", text="CAST(key AS STRING)", length="size"),
}
LATE = "TIMESTAMP '2025-10-09 08:53:21'"

QUERIES = (
    # columns and single rows
    "SELECT * FROM t",
    "SELECT place, k FROM t WHERE place = 7",
    "SELECT place, digest FROM t ORDER BY place DESC LIMIT 5",
    "SELECT place FROM t ORDER BY place LIMIT 5 OFFSET 100",
    "SELECT k, size FROM t ORDER BY size DESC NULLS LAST, place LIMIT 10",
    "SELECT place, us FROM t ORDER BY us, place LIMIT 20",
    "SELECT DISTINCT n FROM t",
    "SELECT DISTINCT k IS NULL, digest IS NULL FROM t",
    # conditions that are pushed down, on the columns of the topic
    f"SELECT count(*) FROM topic WHERE {PART}",
    f'SELECT max("offset") FROM topic WHERE {PART} AND timestamp >= {LATE}',
    f'SELECT min("offset") FROM topic WHERE {PART} AND timestamp < {LATE}',
    f'SELECT "offset" FROM topic WHERE {PART} AND "offset" BETWEEN 100 AND 120',
    f'SELECT "offset" FROM topic WHERE {PART} AND "offset" IN (1, 2, 3, 599, 600, 601)',
    f'SELECT "offset" FROM topic WHERE {PART} AND ("offset" < 5 OR "offset" > 590)',
    f'SELECT "offset" FROM topic WHERE {PART} AND NOT ("offset" >= 10)',
    f"SELECT count(*) FROM topic WHERE {PART} AND partition IN (0, 1) AND topic = 'txn'",
    f"SELECT count(*) FROM topic WHERE {PART} AND topic = 'other'",
    f"SELECT count(*) FROM topic WHERE {PART} AND topic LIKE 'tx%' AND timestamp IS NOT NULL",
    f"SELECT count(*) FROM topic WHERE {PART} AND key IS NULL",
    f'SELECT count(*) FROM topic WHERE {PART} AND "offset" % 7 = 3',
    f'SELECT count(*) FROM topic WHERE {PART} AND "offset" + 1 > 300 AND "offset" - 1 < 400',
    f"SELECT count(*) FROM topic WHERE {PART} AND octet_length(value) > 100",
    f"SELECT count(*) FROM topic WHERE {PART} AND timestamp > {LATE} AND timestamp <= {LATE} + INTERVAL 1 MINUTE",
    "SELECT count(*) FROM topic WHERE partition = 99",
    "SELECT count(*) FROM topic WHERE partition = 0 AND NULL",
    # groups
    "SELECT count(*), count(k), count(digest), sum(place), min(us), max(us), sum(size) FROM t",
    "SELECT n, count(*) AS c, sum(size) AS s FROM t GROUP BY n",
    "SELECT place % 10 AS d, count(DISTINCT k), min(k), max(k) FROM t GROUP BY 1",
    "SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > 1",
    "SELECT date_trunc('minute', ts) AS m, count(*) FROM t GROUP BY 1",
    "SELECT CASE WHEN size > 100 THEN 'big' WHEN size IS NULL THEN 'none' ELSE 'small' END, count(*) FROM t GROUP BY 1",
    "SELECT n, count(*) FILTER (WHERE k IS NULL), count(*) FILTER (WHERE size > 50) FROM t GROUP BY n",
    "SELECT n, place % 2 AS odd, count(*) FROM t GROUP BY ROLLUP (n, place % 2)",
    "SELECT n, place % 2 AS odd, count(*) FROM t GROUP BY CUBE (n, place % 2)",
    "SELECT avg(size), avg(place) FROM t",
    "SELECT max_by(k, place), min_by(digest, place) FROM t WHERE k IS NOT NULL AND digest IS NOT NULL",
    "SELECT bool_and(place >= 0), bool_or(size > 200), bool_and(size > 200) FROM t",
    "SELECT length(k) AS l, count(*) FROM t GROUP BY 1 ORDER BY l DESC NULLS LAST LIMIT 3",
    "SELECT count(*) FROM (SELECT digest FROM t GROUP BY digest)",
    "SELECT sum(c) FROM (SELECT k, count(*) AS c FROM t GROUP BY k)",
    # windows
    "SELECT place, row_number() OVER (ORDER BY place) FROM t",
    "SELECT place, place - lag(place) OVER (ORDER BY place) AS gap FROM t",
    "SELECT max(gap) FROM (SELECT lead(place) OVER (ORDER BY place) - place AS gap FROM t)",
    "SELECT place, rank() OVER (PARTITION BY n ORDER BY size DESC NULLS LAST, place) FROM t",
    "SELECT place, sum(size) OVER (ORDER BY place ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT k, p FROM (SELECT k, place AS p, rank() OVER (PARTITION BY k ORDER BY place) AS r FROM t) WHERE r = 1",
    "SELECT place, first_value(digest) OVER (PARTITION BY n ORDER BY place) FROM t",
    # joins
    "SELECT a.place, b.place FROM t AS a JOIN t AS b ON a.k = b.k AND a.place < b.place",
    "SELECT count(*) FROM t AS a LEFT JOIN t AS b ON a.place = b.place + 1 WHERE b.place IS NULL",
    "SELECT count(*) FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t AS b WHERE b.place = a.place + 1)",
    "SELECT count(*) FROM t WHERE place IN (SELECT place + 2 FROM t WHERE n > 1)",
    "SELECT count(*) FROM t AS a FULL OUTER JOIN (SELECT * FROM t WHERE place > 300) AS b ON a.place = b.place - 300",
    "SELECT count(*), sum(a.place * b.n) FROM t AS a CROSS JOIN t AS b WHERE a.place < 20 AND b.place > 580",
    "SELECT place FROM t WHERE size = (SELECT max(size) FROM t)",
    # sets
    "SELECT place FROM t WHERE place < 10 UNION SELECT place FROM t WHERE place BETWEEN 5 AND 15",
    "SELECT n FROM t WHERE place < 10 UNION ALL SELECT n FROM t WHERE place < 5",
    "SELECT n FROM t EXCEPT SELECT n FROM t WHERE k IS NULL",
    "SELECT place FROM t WHERE n > 1 INTERSECT SELECT place FROM t WHERE size > 50",
    "WITH big AS (SELECT * FROM t WHERE size > 50), few AS (SELECT * FROM big WHERE n > 0) SELECT count(*) FROM few",
    # functions
    "SELECT place, upper(k), length(k), substring(k, 3), replace(k, 'k-', '') FROM t",
    "SELECT place, coalesce(k, 'none') || ':' || coalesce(digest, '') FROM t",
    "SELECT sum(CAST(substring(k, 3) AS BIGINT)) FROM t WHERE k LIKE 'k-%'",
    "SELECT place, nullif(n, 0), abs(place - 300), greatest(place, 300), least(place, 300) FROM t",
    "SELECT place, extract(minute FROM ts), extract(hour FROM ts), date_trunc('second', ts) FROM t",
    "SELECT count(*) FROM t WHERE k LIKE 'k-1%' OR k LIKE '%9'",
    "SELECT count(*) FROM t WHERE k BETWEEN 'k-2' AND 'k-4' AND k <> 'k-3'",
    "SELECT round(sum(size) / count(*), 3) FROM t",
    "SELECT count(*) FROM t WHERE (k IS NULL) = (size IS NULL)",
)


def of_dialect(query: str, dialect: str) -> str:
    """Return a query, or a view, as an engine has it: duckdb, or spark."""
    return query.replace('"', "`") if dialect == "spark" else query
