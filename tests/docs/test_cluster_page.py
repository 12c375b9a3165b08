"""docs/cluster.md: the examples run, and what the tables name exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kwire.broker import Cluster

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")


def test_the_examples_run() -> None:
    names: dict[str, Any] = {"__name__": "example"}
    for example in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(example, "cluster.md", "exec"), names)
        names.pop("producer", None)  # else it complains when its cluster has stopped
    settings = names["kafka_cluster_settings"].__wrapped__()
    with Cluster(**settings) as cluster:
        names["test_orders_survive_a_rolling_restart"](cluster)


def test_the_methods_in_the_table_exist() -> None:
    named = re.findall(r"^\| `cluster\.(\w+)", PAGE, re.MULTILINE)
    assert len(named) >= 9
    assert all(hasattr(Cluster, name) for name in named)
