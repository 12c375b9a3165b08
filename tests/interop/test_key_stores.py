"""What Java trusts of key and trust stores, beside what the client does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.client.test_key_stores import PASSWORD, TRUSTED, make_stores
from tools import kafka

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

JAVA = Path(__file__).parent / "java" / "TrustedCertificates.java"


def test_java_trusts_the_same_certificates(tmp_path: Path) -> None:
    make_stores(tmp_path)
    stores = [str(tmp_path / name) for name in TRUSTED]
    lines = kafka.java("TrustedCertificates", PASSWORD, *stores, classes=kafka.compile_java(JAVA)).splitlines()
    found = [set(re.findall(r"OU=(\w+)", line)) for line in lines]
    assert dict(zip(TRUSTED, found, strict=True)) == TRUSTED
