"""Requests of fsspec drivers that end before a deadline, which grows with the number of bytes.

The timeouts of drivers apply to single reads: an object store that sends a byte a second keeps s3fs for months.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

__all__ = ["LISTING_S", "call", "read_version"]

REQUEST_S = 120.0  # with the repetitions of the driver
LISTING_S = 900.0  # of requests whose size is not known: listings of many pages, copies inside of the store
SLOWEST_BYTES_S = 32 << 10


def call(
    fs: Any, name: str, *arguments: object, size_bytes: int = 0, limit_s: float | None = None, **options: object
) -> Any:
    """Return the result of a driver's method.

    size_bytes: to read or write. limit_s: instead of REQUEST_S. Raises TimeoutError, and the driver's exceptions.
    Methods of drivers without an event loop (archives, sftp, caches in front of others) have no deadline.
    """
    method = getattr(fs, name)
    if not getattr(fs, "async_impl", False) or not inspect.iscoroutinefunction(inspect.unwrap(method)):
        return method(*arguments, **options)
    return _run(fs, getattr(fs, f"_{name}"), *arguments, size_bytes=size_bytes, limit_s=limit_s, **options)


def read_version(fs: Any, path: str, version: str, start: int, end: int) -> bytes:
    """Return bytes [start, end) of an object in S3 while this is its ETag: cat_file has no such condition.

    Raises the driver's exceptions; that of an object that was replaced is one that `is_replaced`.
    """
    from s3fs.core import _inner_fetch  # type: ignore[import-untyped]

    bucket, key, version_id = fs.split_path(path)
    condition = {"IfMatch": version}
    return bytes(_run(fs, _inner_fetch, fs, bucket, key, version_id, start, end, condition, size_bytes=end - start))


def _run(
    fs: Any,
    coroutine: Callable[..., Any],
    *arguments: object,
    size_bytes: int,
    limit_s: float | None = None,
    **options: object,
) -> Any:
    from fsspec.asyn import sync
    from fsspec.exceptions import FSTimeoutError

    limit_s = (REQUEST_S if limit_s is None else limit_s) + size_bytes / SLOWEST_BYTES_S
    start = time.monotonic()
    try:
        return sync(fs.loop, coroutine, *arguments, timeout=limit_s, **options)
    except FSTimeoutError:
        if time.monotonic() - start < limit_s:
            raise  # the driver's own
        raise TimeoutError(f"no whole response within {limit_s:.0f} s") from None
