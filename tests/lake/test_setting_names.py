"""Misspelt options of object stores and catalogs, which the libraries ignore."""

from __future__ import annotations

import logging

import pytest

from kwire.lake import open_delta, open_iceberg
from kwire.lake.setting_names import AWS, AZURE, CATALOG, GOOGLE, warn_of_misspelt


@pytest.mark.parametrize(
    ("format", "name", "meant"),
    [
        ("delta", "aws_regoin", "aws_region"),
        ("delta", "AWS_ENDPIONT_URL", "aws_endpoint_url"),
        ("delta", "azure_storage_acount_name", "azure_storage_account_name"),
        ("delta", "aws_s3_allow_unsafe_renames", "aws_s3_allow_unsafe_rename"),
        ("iceberg", "warehose", "warehouse"),
        ("iceberg", "s3.endpiont", "s3.endpoint"),
        ("iceberg", "s3.access-key", "s3.access-key-id"),
    ],
)
def test_a_misspelt_name_is_reported_once(format: str, name: str, meant: str, caplog: pytest.LogCaptureFixture) -> None:
    """It was ignored without a word."""
    for _ in range(2):  # as a stream opens its table for each micro-batch
        if format == "delta":
            open_delta(f"s3://lake/{name}", {name: "secret", meant: "x"})
        else:
            open_iceberg(f"sales.{name}", {name: "secret", meant: "x"})
    (said,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert f"'{name}' is unknown, and " in said
    assert said.endswith(f"ignores such names (did you mean '{meant}'?)")
    assert "secret" not in said


@pytest.mark.parametrize("name", ["x-amz-acl", "bucket_owner", "region_of_the_moon", "header.X-Tenant", "lake"])
def test_names_of_other_kinds_are_not(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A catalog may define more properties, and a release of a library may have new names."""
    for library in ("delta-rs", "PyIceberg"):
        warn_of_misspelt([name], library, "orders")
    assert not caplog.records


def test_names_that_exist_are_not(caplog: pytest.LogCaptureFixture) -> None:
    for prefix, names in (("aws", AWS), ("azure", AZURE), ("google", GOOGLE)):
        both = [each for name in names.split() for each in (name, f"{prefix}_{name}".upper())]
        warn_of_misspelt(both, "delta-rs", "orders")
    warn_of_misspelt(CATALOG.split(), "PyIceberg", "orders")
    assert not caplog.records


def test_no_name_of_the_installed_pyiceberg_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    import pyiceberg.catalog
    import pyiceberg.io
    import pyiceberg.io.pyarrow

    modules = (pyiceberg.catalog, pyiceberg.io, pyiceberg.io.pyarrow)
    constants = [value for module in modules for name, value in vars(module).items() if name.isupper()]
    names = [each for each in constants if isinstance(each, str) and each.partition(".")[0] in ("s3", "gcs", "adls")]
    assert len(names) > 30
    warn_of_misspelt(names, "PyIceberg", "orders")
    assert not caplog.records
