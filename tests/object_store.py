"""An S3 server on loopback for tests that read from an object store."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

VARIABLES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
KEYS = {"access_key": "hunter2-key", "secret_key": "hunter2-secret", "region": "us-east-1"}
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


@dataclass(slots=True)
class ObjectStore:
    """A running server.

    options: for fsspec. requests: method and path of all clients in this process; received_bytes: of their responses.
    """

    endpoint: str
    requests: list[str] = field(default_factory=list)
    received_bytes: int = 0

    @property
    def options(self) -> dict[str, Any]:
        return {"endpoint_url": self.endpoint, "key": "hunter2", "secret": "hunter2"}

    @property
    def fs(self) -> Any:
        import fsspec

        return fsspec.filesystem("s3", **self.options)

    def upload(self, folder: Path, target: str) -> None:
        """Upload a folder. target: bucket and prefix."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.fs.pipe_file(f"{target}/{path.relative_to(folder)}", path.read_bytes())


@contextmanager
def aws_process(*buckets: str) -> Iterator[str]:
    """Serve S3 and Glue in another process, and yield their URL: delta-rs holds the interpreter lock in some requests.

    Skips if moto is missing.
    """
    pytest.importorskip("moto.server", reason="needs moto[server] for AWS on loopback")
    from pyarrow.fs import S3FileSystem

    command = [sys.executable, "-m", "tests.aws_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            store = S3FileSystem(endpoint_override=url, allow_bucket_creation=True, **KEYS)
            for bucket in buckets:
                store.create_dir(bucket)
            yield url
        finally:
            server.kill()


@contextmanager
def serve_object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """Serve an empty store. Skips if moto or s3fs is missing."""
    moto = pytest.importorskip("moto.server", reason="needs moto[server] for S3 on loopback")
    s3fs = pytest.importorskip("s3fs", reason="needs kwire[s3]")
    from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]

    for name in (*VARIABLES, *PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # where botocore looks for credentials last
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        store = ObjectStore(f"http://{host}:{port}")
        reset = urllib.request.Request(f"{store.endpoint}/moto-api/reset", method="POST")
        urllib.request.urlopen(reset).close()  # moto keeps its buckets for the life of the process
        send = AIOHTTPSession.send

        async def counted(self: Any, request: Any) -> Any:
            store.requests.append(f"{request.method} {request.url.removeprefix(store.endpoint)}")
            response = await send(self, request)
            if request.method == "GET":
                store.received_bytes += int(response.headers.get("Content-Length", 0))
            return response

        monkeypatch.setattr(AIOHTTPSession, "send", counted)
        yield store
    finally:
        server.stop()
        s3fs.S3FileSystem.clear_instance_cache()  # each holds 20 MB of botocore's models, and its endpoint is gone
