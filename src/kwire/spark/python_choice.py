"""Make Spark run the Python of this program, unless another one is configured. Standard library only.

Spark's JVM starts `python3` from its PATH to find data sources, to plan queries and to run tasks, unless PYSPARK_PYTHON
or PYSPARK_DRIVER_PYTHON is set. A program that runs as `environment/bin/python program.py`, without activating the
environment, would therefore get a Python without kwire. The JVM reads these variables from its environment, so they
must be set before it starts.
Source: Spark's PythonUtils.defaultPythonExec; PySpark's launch_gateway, SparkContext.pythonExec.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, MutableMapping
from itertools import pairwise
from pathlib import Path

__all__ = ["choose_python"]

CONFIGURED = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
# Set in processes that Spark starts: programs of spark-submit, shells, Python workers. Their JVM is running.
STARTED_BY_SPARK = ("PYSPARK_GATEWAY_PORT", "SPARK_ENV_LOADED")
PROPERTY = re.compile(r"(?P<name>[^#!\s=:][^\s=:]*)[\s=:]+(?P<value>.*)")


def choose_python(environ: MutableMapping[str, str] = os.environ) -> None:
    """Set PYSPARK_PYTHON to this interpreter, for the JVM that PySpark will start.

    Does nothing if a Python is configured, if `python3` is this interpreter, if Spark is running or has started this
    process, or if the configuration names a master that is not local, whose executors may have Python elsewhere.
    """
    if not sys.executable or any(environ.get(name) for name in (*CONFIGURED, *STARTED_BY_SPARK)):
        return
    found = shutil.which("python3", path=environ.get("PATH"))
    if found is not None and os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable):
        return
    context = sys.modules.get("pyspark.core.context")
    if context is not None and context.SparkContext._gateway is not None:
        return
    properties = dict(spark_properties(environ))
    if "spark.pyspark.python" in properties or "spark.pyspark.driver.python" in properties:
        return
    master = environ.get("SPARK_REMOTE") or properties.get("spark.master") or environ.get("MASTER", "local")
    if master.startswith("local"):
        environ["PYSPARK_PYTHON"] = sys.executable


def spark_properties(environ: MutableMapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the properties in spark-defaults.conf and, overriding them, in PYSPARK_SUBMIT_ARGS."""
    folder = environ.get("SPARK_CONF_DIR")
    home = environ.get("SPARK_HOME")
    if folder is None and home is None:
        spec = importlib.util.find_spec("pyspark")
        home = os.path.dirname(spec.origin) if spec is not None and spec.origin is not None else None
    if folder is None and home is not None:
        folder = os.path.join(home, "conf")
    if folder is not None:
        try:
            lines = Path(folder, "spark-defaults.conf").read_text("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        for line in lines:
            if found := PROPERTY.fullmatch(line.strip()):
                yield found["name"], found["value"]
    try:
        words = shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", ""))
    except ValueError:
        words = []
    for option, value in pairwise(words):
        if option == "--master":
            yield "spark.master", value
        elif option in ("--conf", "-c"):
            name, _, text = value.partition("=")
            yield name, text
