"""Suggestions in error messages, and secrets that they do not show."""

from __future__ import annotations

import pickle
import time

import pytest

from kwire.errors import (
    BrokerError,
    ConnectionFailed,
    CorruptBatch,
    LogError,
    LogTruncated,
    OptionError,
    TableError,
    did_you_mean,
    hide_secrets,
)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("order", " (did you mean 'orders'?)"),
        ("ORDERS", " (did you mean 'orders'?)"),
        ("subscribepattern", " (did you mean 'subscribePattern'?)"),
        ("x", ""),
    ],
)
def test_a_close_name_is_suggested_in_its_own_spelling(name: str, suggestion: str) -> None:
    assert did_you_mean(name, ["payments", "orders", "subscribePattern"]) == suggestion


def test_long_names_are_not_compared() -> None:
    for length, suggestion in ((200, True), (201, False)):
        assert bool(did_you_mean("x" * length, ["x" * (length - 1) + "y"])) == suggestion
    assert did_you_mean("orders", ["x" * 1000, "order"]) == " (did you mean 'order'?)"
    assert not did_you_mean("ab" * 500_000, ["ba" * 500_000])  # hours


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no URL: u:p@h", "no URL: u:p@h"),
        ("https://host:9000/a@b?x=1", "https://host:9000/a@b?x=1"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("kafka://host:9092", "kafka://host:9092"),
        ("https://u:hunter2@host/x", "https://[hidden]@host/x"),
        ("'sftp://hunter2@host' and https://u:hunter2@b", "'sftp://[hidden]@host' and https://[hidden]@b"),
        ("s3://AKIA:hunter2/x+y@bucket/key: gone", "s3://[hidden]@bucket/key: gone"),
        ("tiered+s3://AKIA:hunter2@bucket", "tiered+s3://[hidden]@bucket"),
        ("https://u:12345@host", "https://[hidden]@host"),
        ("https://u:p@hunter2@host/x", "https://[hidden]@host/x"),
        ("https://h/x?sv=1&sig=hunter2&se=2", "https://h/x?sv=1&sig=[hidden]&se=2"),
        ("https://h/x?token=hunter2 failed", "https://h/x?token=[hidden] failed"),
        ("https://h/?X-Amz-Signature=hunter2", "https://h/?X-Amz-Signature=[hidden]"),
        ("https://h/?AWSAccessKeyId=hunter2;a=b", "https://h/?AWSAccessKeyId=[hidden];a=b"),
    ],
)
def test_texts_of_errors_have_no_secrets_of_urls(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    assert hide_secrets(shown) == shown
    for error in (
        OptionError(text),
        LogError("gone", text),
        LogError(text, "file"),
        TableError("gone", text),
        ConnectionFailed(text, "host:1"),
        BrokerError(text, 3),
        LogTruncated(text, 1, 2),
        CorruptBatch("wrong", 0, (), text, (1, 2)),
    ):
        for each in (error, pickle.loads(pickle.dumps(error))):
            assert shown in str(each)
            assert "hunter2" not in str(each) + repr(each)


def test_long_texts_take_linear_time() -> None:
    for text in ("a://" * 50_000, "a://b:" + ":" * 200_000, "://?" + "key" * 50_000, "https://u:" + "x" * 200_000):
        started = time.process_time()
        hide_secrets(text)
        assert time.process_time() - started < 5
