"""Make Spark run the Python of this program, unless another one is configured. Standard library only.

Spark's JVM starts `python3` from its PATH to find data sources, to plan queries and to run tasks, unless PYSPARK_PYTHON
or PYSPARK_DRIVER_PYTHON is set. A program that runs as `environment/bin/python program.py`, without activating the
environment, would therefore get a Python without kwire. The JVM reads these variables from its environment, so they
must be set before it starts.

The JVM also puts pyspark.zip first on the path of these processes. Python compiles modules of a zip file in each
process again, which takes half a second; of an installed PySpark it has the bytecode. `bin/python3` runs this Python
without the zip file, if that holds the PySpark that is installed.
Source: Spark's PythonUtils.defaultPythonExec, sparkPythonPath; PySpark's launch_gateway, SparkContext.pythonExec.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import site
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import pairwise
from pathlib import Path

__all__ = ["choose_python"]

CONFIGURED = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
# Set in processes that Spark starts: programs of spark-submit, shells, Python workers. Their JVM is running.
STARTED_BY_SPARK = ("PYSPARK_GATEWAY_PORT", "SPARK_ENV_LOADED")
LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "python3")
PROPERTY = re.compile(r"(?P<name>[^#!\s=:][^\s=:]*)[\s=:]+(?P<value>.*)")


def choose_python(environ: MutableMapping[str, str] = os.environ) -> None:
    """Set PYSPARK_PYTHON for the JVM that PySpark will start, so that it runs this interpreter.

    If `python3` already is this interpreter, PYSPARK_PYTHON stays unset, and PATH starts with the folder of
    `bin/python3`: a program may choose a master later whose executors have Python elsewhere.

    Does nothing if a Python is configured, if Spark is running or has started this process, or if the configuration
    names a master that is not local.
    """
    if not sys.executable or any(environ.get(name) for name in (*CONFIGURED, *STARTED_BY_SPARK)):
        return
    context = sys.modules.get("pyspark.core.context")
    if context is not None and context.SparkContext._gateway is not None:
        return
    properties = dict(spark_properties(environ))
    if "spark.pyspark.python" in properties or "spark.pyspark.driver.python" in properties:
        return
    master = environ.get("SPARK_REMOTE") or properties.get("spark.master") or environ.get("MASTER", "local")
    if not master.startswith("local"):
        return
    python = shutil.which("python3", path=environ.get("PATH"))
    is_found = python is not None and os.path.dirname(os.path.abspath(python)) == os.path.dirname(sys.executable)
    pyspark = installed_pyspark(environ)
    if pyspark is not None and os.access(LAUNCHER, os.X_OK):
        environ.update(KWIRE_SPARK_PYTHON=sys.executable, KWIRE_PYSPARK=pyspark)
        if is_found:
            environ["PATH"] = os.path.dirname(LAUNCHER) + os.pathsep + environ.get("PATH", os.defpath)
        else:
            environ["PYSPARK_PYTHON"] = LAUNCHER
    elif not is_found:
        environ["PYSPARK_PYTHON"] = sys.executable


def installed_pyspark(environ: Mapping[str, str]) -> str | None:
    """Return the folder of PySpark if new processes find it and py4j without Spark's zip files, and Spark is in it."""
    folder = _package_folder("pyspark")
    if folder is None or os.path.isdir(os.path.join(folder, "spark-distribution")):
        return None
    home, packages = environ.get("SPARK_HOME", folder), os.path.dirname(folder)
    if os.path.realpath(home) != folder or packages not in map(os.path.realpath, site.getsitepackages()):
        return None
    py4j = _package_folder("py4j")
    return None if py4j is None or os.path.dirname(py4j) != packages else folder


def _package_folder(name: str) -> str | None:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else os.path.dirname(os.path.realpath(spec.origin))


def spark_properties(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the properties in spark-defaults.conf and, overriding them, in PYSPARK_SUBMIT_ARGS."""
    folder = environ.get("SPARK_CONF_DIR")
    home = environ.get("SPARK_HOME")
    if folder is None and home is None:
        home = _package_folder("pyspark")
    if folder is None and home is not None:
        folder = os.path.join(home, "conf")
    if folder is not None:
        try:
            lines = Path(folder, "spark-defaults.conf").read_text("utf-8", "replace").splitlines()
        except OSError:
            lines = []
        for line in lines:
            if match := PROPERTY.fullmatch(line.strip()):
                yield match["name"], match["value"]
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
