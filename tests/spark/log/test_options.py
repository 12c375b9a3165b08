"""Options of kafka-log: names, defaults, rejections."""

from __future__ import annotations

import pickle

import pytest

from kwire.errors import OptionError
from kwire.spark.log.options import UNSUPPORTED, parse_options
from kwire.spark.options.query import Matching, Subscribe


def test_only_the_path_is_required_and_defaults_equal_sparks_kafka_source() -> None:
    options = parse_options({"path": "/logs"})
    assert options.paths == ("/logs",)
    assert options.selection == Matching(None, False)
    assert (options.start, options.end) == (None, None)
    assert (options.no_match, options.isolation, options.mode) == ("error", "read_uncommitted", "FAILFAST")
    assert options.fail_on_data_loss
    assert options.check_crc
    assert not options.include_headers
    assert (options.min_partitions, options.max_records, options.columns) == (None, None, None)


def test_option_names_and_keywords_are_case_insensitive() -> None:
    options = parse_options(
        {
            "PATH": "/logs",
            "Subscribe": "a,b",
            "INCLUDEHEADERS": "True",
            "failondataloss": "FALSE",
            "Mode": "permissive",
            "Kafka.Isolation.Level": "READ_COMMITTED",
            "startingOffsetsByTimestampStrategy": "LATEST",
            "minPartitions": "7",
            "maxRecordsPerPartition": "100",
            "columns": " offset, _corrupt ",
        }
    )
    assert options.selection == Subscribe(frozenset({"a", "b"}))
    assert options.include_headers
    assert not options.fail_on_data_loss
    assert (options.mode, options.isolation, options.no_match) == ("PERMISSIVE", "read_committed", "latest")
    assert (options.min_partitions, options.max_records, options.columns) == (7, 100, ("offset", "_corrupt"))


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_options_that_do_not_apply_to_files_are_rejected_with_the_reason(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_options({"path": "/logs", name.lower(): "1"})
    assert f"Option '{name}' is not supported: {UNSUPPORTED[name]}" in str(caught.value)


def test_an_unknown_option_is_rejected_with_the_closest_name() -> None:
    with pytest.raises(OptionError, match=r"'startingoffset' \(did you mean 'startingOffsets'\?\); docs/spark.md"):
        parse_options({"path": "/logs", "startingoffset": "earliest"})
    with pytest.raises(OptionError, match=r"did you mean 'kafka.isolation.level'"):
        parse_options({"path": "/logs", "kafka.isolation": "read_committed"})
    with pytest.raises(OptionError, match=r"the only kafka\.\* option is kafka\.isolation\.level"):
        parse_options({"path": "/logs", "kafka.ssl.truststore.location": "x"})
    with pytest.raises(OptionError, match=r"Unknown option 'xyzzy'; docs/spark.md lists the options"):
        parse_options({"path": "/logs", "xyzzy": "1"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Option 'path' must be specified"),
        ({"path": " "}, "Option 'path' must be specified"),
        ({"paths": "nonsense"}, "paths"),
        ({"path": "/l", "subscribe": "a", "assign": '{"a":[0]}'}, "Only one of the following options"),
        ({"path": "/l", "minPartitions": "0"}, "'minPartitions': must be positive"),
        ({"path": "/l", "maxRecordsPerPartition": "many"}, "'maxRecordsPerPartition': expected an integer"),
        ({"path": "/l", "includeHeaders": "yes"}, "'includeHeaders': expected true or false, got 'yes'"),
        ({"path": "/l", "mode": "FAILFST"}, "did you mean 'FAILFAST'"),
        ({"path": "/l", "kafka.isolation.level": "serializable"}, "one of read_uncommitted, read_committed"),
        ({"path": "/l", "startingOffsetsByTimestampStrategy": "earliest"}, "one of error, latest"),
        ({"path": "/l", "columns": " , "}, "'columns': expected a comma-separated list of columns"),
        ({"path": "/l", "endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ({"path": "/l", "startingTimestamp": "5", "endingTimestamp": "4"}, "greater than the end timestamp"),
    ],
)
def test_invalid_values_are_rejected_and_reported(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options(given)


def test_several_paths_are_parsed_as_spark_passes_them() -> None:
    assert parse_options({"paths": '["/a","/b"]'}).paths == ("/a", "/b")


def test_storage_options_are_typed_except_credentials() -> None:
    options = parse_options(
        {
            "path": "s3://bucket/logs",
            "storage.anon": "false",
            "storage.client_kwargs": '{"region_name": "eu-west-1"}',
            "storage.endpoint_url": "http://127.0.0.1:9000",
            "storage.key": "0123",
            "storage.secret": "true",
            "storage.profile": '"42"',
        }
    )
    assert options.storage == {
        "anon": False,
        "client_kwargs": {"region_name": "eu-west-1"},
        "endpoint_url": "http://127.0.0.1:9000",
        "key": "0123",
        "secret": "true",
        "profile": "42",
    }


def test_secrets_are_hidden_in_text_and_errors_and_options_pickle() -> None:
    given = {"path": "s3://bucket/logs", "storage.secret": "hunter2", "storage.client_kwargs": '{"token": "hunter2"}'}
    options = parse_options(given)
    assert "hunter2" not in repr(options) + str(options)
    assert pickle.loads(pickle.dumps(options)) == options
    for wrong in ({"mode": "x"}, {"columns": ","}, {"nonsense": "1"}, {"storage.": "hunter2"}):
        with pytest.raises(OptionError) as caught:
            parse_options({**given, **wrong})
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["sftp://me:hunter2@host/logs", "zip://x::sftp://me:hunter2@host/a.zip", "sftp://me:hunter2@[host/logs"]
)
def test_a_password_in_the_path_is_rejected_without_showing_it(path: str) -> None:
    with pytest.raises(OptionError, match="holds a password") as caught:
        parse_options({"path": path})
    assert "hunter2" not in str(caught.value)
