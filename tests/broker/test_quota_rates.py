"""Rates and token buckets of quotas, compared with values of Kafka's own classes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kwire.broker.network.quota_rates import SampledRate, TokenBucket

VECTORS = Path(__file__).parents[1] / "data" / "quota-rates-3.9.1.jsonl.gz"
CASES: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(VECTORS.read_bytes()).splitlines()]


def test_rates_equal_kafkas() -> None:
    for case in CASES:
        rate = SampledRate(case["samples"], case["window_s"] * 1000)
        for now_ms, value, measured, window_ms, throttle_ms, _ in case["steps"]:
            rate.record(value, now_ms)
            assert rate.measure(now_ms) == pytest.approx(measured, rel=1e-9, abs=1e-9)
            assert rate.window_ms(now_ms) == window_ms
            assert rate.throttle_ms(case["quota"], now_ms) == throttle_ms


def test_token_buckets_equal_kafkas() -> None:
    for case in CASES:
        bucket, quota = TokenBucket(case["samples"] * case["window_s"]), case["quota"]
        for now_ms, value, _, _, _, throttle_ms in case["steps"]:
            bucket.take(value, quota, now_ms)
            assert bucket.throttle_ms(quota, now_ms) == throttle_ms
