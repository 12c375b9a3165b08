"""Exceptions of kwire for those that PyIceberg, its catalogs and file systems raise. No message has a secret."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from kwire.errors import TableError
from kwire.lake.libraries import translating
from kwire.lake.table import CommitConflict, CommitRefused

__all__ = ["as_table_errors", "configuration_error"]

# PyIceberg's, for a commit that came too late or a table that was removed meanwhile
LATE = ("CommitFailedException", "ValidationException", "NoSuchTableError")
# Databases: SQLite while another process writes, PostgreSQL and SQLite if another process has created the same
LATE_IN_DATABASE = re.compile(r"locked|already exists|duplicate key|UNIQUE constraint", re.IGNORECASE)
UNREACHABLE = ("ConnectionError", "ConnectTimeout", "ProxyError", "SSLError")
UNREACHABLE_GLUE = ("EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError", "SSLError")
REFUSED = ("UnauthorizedError", "ForbiddenError", "AuthorizationExpiredError", "OAuthError")
NO_JSON = re.compile(r"RESTError (\d+): (Could not decode json|Received unexpected JSON)")
REFUSED_DATABASE = re.compile(r"authentication failed|permission denied|no password supplied|role .* does not exist")
REFUSED_GLUE = re.compile(
    r"\((AccessDenied\w*|UnrecognizedClient\w*|InvalidSignature\w*|ExpiredToken\w*|InvalidClientTokenId"
    r"|MissingAuthenticationToken\w*|401|403)\)|Unable to locate credentials|Partial credentials"
)


def _table_error(error: Exception, table: str) -> Exception:
    """Return a TableError; CommitConflict for a commit that came too late."""
    kind = type(error)
    text = str(error).strip().splitlines()
    what = text[0] if text else kind.__name__
    if kind.__name__ in LATE:
        return CommitConflict(what)
    package = kind.__module__.partition(".")[0]
    if package == "sqlalchemy":
        return _database_error(re.sub(r"^\([\w.]+\) ", "", what), kind.__name__, table)  # without the driver's class
    if package == "botocore":
        return _glue_error(what, kind.__name__, table)
    if isinstance(error, ImportError):
        what += "; install what this catalog or store needs, such as pip install 'pyiceberg[s3fs,glue,sql-postgres]'"
    if package == "requests" and kind.__name__ in UNREACHABLE:
        what = f"the catalog cannot be reached: {_host(error)}{_reason(error)}; check catalog.uri"
    if kind.__name__ in REFUSED:
        return _refused(re.sub(r"^\w+(Exception|Error): ", "", what), table)  # without the server's exception
    if no_json := NO_JSON.match(what):
        what = f"the response is not that of an Iceberg REST catalog: HTTP {no_json[1]}; check catalog.uri"
    return TableError(what, table)


as_table_errors = translating(_table_error)


def configuration_error(error: Exception, table: str) -> TableError:
    """Return the error for a catalog's properties that PyIceberg cannot read. It quotes them; this error does not."""
    text = str(error)
    kind = type(error)
    if kind.__module__.startswith("strictyaml"):
        line = re.search(r"line (\d+)", text)
        where = f", line {line[1]}" if line else ""
        return TableError(f"the file .pyiceberg.yaml is not valid{where}: {text.splitlines()[0].lower()}", table)
    if variable := re.search(r"URI missing.*\b(PYICEBERG_CATALOG__\S+__URI)", text):
        return TableError(
            "catalog.uri is missing, or catalog.type of a catalog without a URI, such as glue; set it as an option, as "
            f"{variable[1]} or in ~/.pyiceberg.yaml",
            table,
        )
    if "infer the catalog type" in text:
        return TableError("catalog.type is missing, which this catalog.uri requires: rest, sql, hive, ...", table)
    if "following properties" in text:
        return TableError("catalog.type is not a string; check ~/.pyiceberg.yaml", table)
    if kind.__module__.startswith("pydantic"):
        return TableError("the response is not that of an Iceberg REST catalog; check catalog.uri", table)
    return TableError(text.splitlines()[0] if text else kind.__name__, table)


def _database_error(what: str, kind: str, table: str) -> Exception:
    if LATE_IN_DATABASE.search(what):
        return CommitConflict(what)
    if REFUSED_DATABASE.search(what):
        return _refused(what, table)
    if kind in ("OperationalError", "InterfaceError"):
        return TableError(f"the catalog's database does not respond: {what}; check catalog.uri", table)
    return TableError(what, table)


def _glue_error(what: str, kind: str, table: str) -> Exception:
    if REFUSED_GLUE.search(what):
        return _refused(what, table)
    if kind in UNREACHABLE_GLUE:
        return TableError(f"the catalog cannot be reached: {what}; check catalog.glue.endpoint and the region", table)
    if kind == "NoRegionError":
        return TableError("the catalog's region is not set; set catalog.glue.region or AWS_REGION", table)
    return TableError(what, table)


def _refused(reason: str, table: str) -> CommitRefused:
    return CommitRefused(f"the catalog refuses access: {reason}; check its credentials", table)


def _host(error: Any) -> str:
    """Return the server of a request, which is the catalog's or that of its tokens."""
    url = urlsplit(getattr(getattr(error, "request", None), "url", None) or "")
    return f"{url.hostname}:{url.port}: " if url.hostname and url.port else f"{url.hostname}: " if url.hostname else ""


def _reason(error: BaseException) -> str:
    """Return the innermost reason of a connection that failed, without objects' names."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error)
