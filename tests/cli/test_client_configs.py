"""-c and --config-file for kafka:// URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.cli.client_configs import client_configs
from kwire.errors import OptionError

URL = "kafka://b:9092"


def test_configs_come_from_the_file_and_the_command_line_which_takes_precedence(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# a comment\nsecurity.protocol = SASL_SSL\nclient.id=file\nsasl.jaas.config=Scram \\\n   required \\\n"
        '  username="alice" password="wonder\\\\=land";\n'
    )
    found = client_configs(URL, ["client_id=line", "fetch.max.bytes = 5"], str(file))
    assert found == {
        "security.protocol": "SASL_SSL",
        "client.id": "line",
        "fetch.max.bytes": "5",
        "sasl.jaas.config": 'Scram required username="alice" password="wonder\\=land";',
    }


@pytest.mark.parametrize("line", ["fetch.max.byte=1", "request.timeout.ms=soon", "sasl.login.class=a.B"])
def test_an_error_in_the_file_names_the_file(line: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"client.id=a\n{line}\n")
    with pytest.raises(OptionError, match=rf"client.properties: .*{line.partition('=')[0]}"):
        client_configs("Kafka://b:9092", None, str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sasl.password=hunter2", "--config sasl.password: .*--config-file"),
        ("SASL_PASSWORD=hunter2", "--config-file"),
        ("sasl.jaas.config: x required password=hunter2", "--config sasl.jaas.config: .*--config-file"),
        ("ssl.keystore.key=hunter2", "--config-file"),
        ("sasl.password hunter2", "--config sasl.password: .*--config-file"),
        ("hunter2", "expected NAME=VALUE"),
        ("bootstrap.servers=hunter2", "the URL has the servers"),
    ],
)
def test_secrets_on_the_command_line_are_refused_and_not_repeated(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        client_configs(URL, [text], None)
    assert "hunter2" not in str(raised.value)


def test_configs_of_a_client_need_a_cluster(tmp_path: Path) -> None:
    assert client_configs("data", None, None) == {}
    with pytest.raises(OptionError, match="--config requires a path that begins with kafka://"):
        client_configs("data", ["client.id=x"], None)
    with pytest.raises(OptionError, match="--config-file requires"):
        client_configs("data", None, "x")
    with pytest.raises(OptionError, match="nowhere: cannot be read: No such file"):
        client_configs(URL, None, str(tmp_path / "nowhere"))
