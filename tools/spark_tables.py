"""Spark 4.1 with the JARs of Iceberg and Delta Lake, in a separate process: they have none for newer releases.

PySpark is installed in build/pyspark-4.1 on the first call, and the JARs come from Maven Central. Each folder of tables
is a catalog of its own: an SQLite file that Iceberg's JdbcCatalog and PyIceberg share.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tools import kafka
from tools.session_process import ROOT, SessionProcess, serve, variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PYSPARK", "SparkTables", "add_catalog"]

PYSPARK = "4.1.1"
PACKAGES = ROOT / "build" / "pyspark-4.1"
EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)


def install_pyspark() -> None:
    """Install the PySpark that the JARs support, once."""
    if (PACKAGES / f"pyspark-{PYSPARK}.dist-info" / "RECORD").exists():
        return
    shutil.rmtree(PACKAGES, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(PACKAGES)]
    subprocess.run([*pip, f"pyspark=={PYSPARK}", "py4j==0.10.9.9"], check=True)


class SparkTables(SessionProcess):
    """A session with the JARs. Raises Unavailable without mvn."""

    def __init__(self) -> None:
        jars = ",".join(map(str, sorted(kafka.spark_table_jars().glob("*.jar"))))
        install_pyspark()
        super().__init__("tools.spark_tables", variables(PACKAGES), jars)


def add_catalog(spark: SparkSession, name: str, folder: str) -> None:
    """Make the tables of a folder known. name: of the catalog, to PyIceberg as well."""
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.type", "jdbc")
    spark.conf.set(f"spark.sql.catalog.{name}.uri", f"jdbc:sqlite:{folder}/catalog.db")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", f"file://{folder}")
    spark.conf.set(f"spark.sql.catalog.{name}.cache-enabled", "false")


def main() -> None:
    """Run the functions that the caller sends. Argument: the JARs."""
    serve(lambda: _start(sys.argv[1]))


def _start(jars: str) -> SparkSession:
    from pyspark.sql import SparkSession

    import kwire.spark  # noqa: F401  (chooses the Python of Spark's processes)

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(kafka.SHORT_LIVED),
        "spark.log.level": "ERROR",
        "spark.jars": jars,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": ",".join(EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


if __name__ == "__main__":
    main()
