"""A registry over HTTP for tests: the part of Confluent's REST API that clients use, over schemas in memory.

`answer_first` scripts responses that come before normal ones: (status, body), or a function of the handler.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Entry = dict[str, Any]
Scripted = tuple[int, bytes] | Callable[[BaseHTTPRequestHandler], None]


@dataclass
class RegistryServer:
    """A running server. requests: the paths that were asked for. required: the value of the header Authorization."""

    url: str = ""
    entries: list[Entry] = field(default_factory=list)
    answer_first: list[Scripted] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    required: str | None = None

    def add(self, subject: str, schema: str, kind: str = "AVRO", references: Any = (), **more: Any) -> Entry:
        """Register a schema."""
        same = [e for e in self.entries if (e["schema"], e["schemaType"]) == (schema, kind)]
        version = 1 + sum(e["subject"] == subject for e in self.entries)
        entry = {
            "subject": subject,
            "version": version,
            "id": same[0]["id"] if same else 1 + len(self.entries),
            "schemaType": kind,
            "schema": schema,
            "references": list(references),
            **more,
        }
        self.entries.append(entry)
        return entry

    def respond(self, method: str, path: str, body: Entry) -> tuple[int, object]:
        """Return status and JSON of a request."""
        match [unquote(part) for part in path.strip("/").split("/")]:
            case ["schemas", ("ids" | "guids") as kind, key]:
                name = "id" if kind == "ids" else "guid"
                found = [e for e in self.entries if str(e.get(name)) == key]
                kept = ("schema", "schemaType", "references", "guid")
                return (200, {k: found[0][k] for k in kept if k in found[0]}) if found else unknown(40403, "Schema")
            case ["subjects"]:
                return 200, sorted({e["subject"] for e in self.entries})
            case ["subjects", subject, "versions"] if method == "GET":
                found = [e["version"] for e in self.entries if e["subject"] == subject]
                return (200, found) if found else unknown(40401, "Subject")
            case ["subjects", subject, "versions"]:
                return 200, {"id": self.add(subject, body["schema"], body.get("schemaType", "AVRO"))["id"]}
            case ["subjects", subject, "versions", version]:
                found = [e for e in self.entries if e["subject"] == subject]
                if not found:
                    return unknown(40401, "Subject")
                found = found[-1:] if version == "latest" else [e for e in found if str(e["version"]) == version]
                return (200, found[0]) if found else unknown(40402, "Version")
            case ["subjects", subject]:
                found = [e for e in self.entries if (e["subject"], e["schema"]) == (subject, body["schema"])]
                return (200, found[0]) if found else unknown(40403, "Schema")
        return 404, "no such path"


def unknown(code: int, what: str) -> tuple[int, object]:
    """Return the response for something that is not registered."""
    return 404, {"error_code": code, "message": f"{what} not found"}


@contextmanager
def serve(context: ssl.SSLContext | None = None) -> Iterator[RegistryServer]:
    """Run a registry on a free port of loopback. context: for TLS."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def handle_request(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(size)) if size else {}
            path = urlsplit(self.path).path
            registry.requests.append(path)
            if registry.answer_first:
                scripted = registry.answer_first.pop(0)
                if callable(scripted):
                    scripted(self)
                else:
                    self.send(*scripted)
            elif registry.required is not None and self.headers.get("Authorization") != registry.required:
                self.send(401, b'{"error_code":40101,"message":"Unauthorized"}')
            else:
                status, value = registry.respond(self.command, path, body)
                self.send(status, json.dumps(value).encode())

        do_GET = do_POST = handle_request  # noqa: N815

        def send(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # clients that reject the certificate

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    registry.url = f"{'https' if context else 'http'}://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
