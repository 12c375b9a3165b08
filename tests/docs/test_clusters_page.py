"""The example of docs/clusters.md runs on a broker."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.broker.still import StillBroker
from tests.docs.examples import blocks


def test_the_examples_of_the_page_on_clusters_run(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(kafka_logs["modern"] / "data", tmp_path / "data")
    with StillBroker(data_dir=tmp_path / "data") as broker:
        (source,) = blocks("clusters.md", "python")
        exec(compile(source.replace("broker:9092", broker.bootstrap_servers), "clusters.md", "exec"), {})
