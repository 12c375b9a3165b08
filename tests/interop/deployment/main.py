"""Runs checks of this folder on one Spark session, in an environment that has kwire from its wheel: main.py GIVEN.json.

Its last line of output is a JSON object with the errors by check, null for success. It imports nothing of the checkout
and runs from a copy.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from given import Given
from pyspark.sql import SparkSession

import kwire.spark  # before the session: Spark then runs the Python of this program


def main(path: str) -> None:
    settings = json.loads(Path(path).read_text("utf-8"))
    assert "/site-packages/kwire/__init__.py" in kwire.__file__, kwire.__file__
    assert not [each for each in sys.path if each.startswith(settings["checkout"])], sys.path
    builder = SparkSession.builder
    for name, value in settings["conf"].items():
        builder = builder.config(name, value)
    builder = builder.remote(settings["remote"]) if "remote" in settings else builder.master(settings["master"])
    given = Given(
        spark=builder.getOrCreate(),
        servers=settings["servers"],
        logs=Path(settings["logs"]),
        captures=Path(settings["captures"]),
        out=Path(settings["out"]),
        checkout=settings["checkout"],
        pages=settings["pages"],
    )
    found: dict[str, str | None] = {}
    for name in settings["checks"]:
        module, _, check = name.partition(".")
        began = time.monotonic()
        try:
            getattr(import_module(module), check)(given)
            found[name] = None
        except Exception:
            found[name] = traceback.format_exc()
            print(found[name])
        print(f"{name}: {'fine' if found[name] is None else 'FAILED'}, {time.monotonic() - began:.1f} s", flush=True)
    given.spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
