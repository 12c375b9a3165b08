"""Runs checks of this folder on one Spark session, in an environment that has kwire from its wheel: main.py GIVEN.json.

The last line it prints is a JSON object: what went wrong, by check; null where nothing did. It imports nothing of the
checkout, and is run from a copy.
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
    told = json.loads(Path(path).read_text("utf-8"))
    assert "/site-packages/kwire/__init__.py" in kwire.__file__, kwire.__file__
    assert not [each for each in sys.path if each.startswith(told["checkout"])], sys.path
    builder = SparkSession.builder
    for name, value in told["conf"].items():
        builder = builder.config(name, value)
    builder = builder.remote(told["remote"]) if "remote" in told else builder.master(told["master"])
    given = Given(
        spark=builder.getOrCreate(),
        servers=told["servers"],
        logs=Path(told["logs"]),
        captures=Path(told["captures"]),
        out=Path(told["out"]),
        checkout=told["checkout"],
        pages=told["pages"],
    )
    found: dict[str, str | None] = {}
    for name in told["checks"]:
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
