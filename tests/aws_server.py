"""S3 and Glue by moto, as a process: python -m tests.aws_server. Prints its URL.

Glue refuses an update of another version than the table's, as AWS documents it and moto does not: VersionId of
UpdateTable. Without that, catalogs lose commits of concurrent writers.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

LOCK = threading.Lock()


def _checked(update: Any) -> Any:
    def update_table(self: Any) -> Any:
        with LOCK:
            given = self.parameters
            table = self.glue_backend.get_table(given["DatabaseName"], given["TableInput"]["Name"])
            if given.get("VersionId") not in (None, table.as_dict()["VersionId"]):
                raise JsonRESTError("ConcurrentModificationException", "Update table failed due to concurrent update")
            return update(self)

    return update_table


def main() -> None:
    """Serve until the process is killed."""
    GlueResponse.update_table = _checked(GlueResponse.update_table)  # type: ignore[method-assign]
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
