"""A registry behind Confluent's REST API, as Confluent, Apicurio, Karapace and Redpanda serve it.

Settings have the names of Confluent's clients, with underscores for dots. Requests that fail to connect, and responses
429, 500, 502, 503 and 504, are repeated with backoff, then sent to the next URL.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from kwire.errors import OptionError, RegistryError, UnknownSchema, did_you_mean
from kwire.extras import needing
from kwire.schemas.registered import LATEST, RegisteredSchema, SchemaId, schema_from_json
from kwire.url_passwords import without_user

if TYPE_CHECKING:
    import urllib3

__all__ = ["HttpSettings", "HttpSource"]

MAX_RESPONSE_BYTES = 64 << 20
REPEATED_STATUS = (429, 500, 502, 503, 504)
MAX_BACKOFF_S = 5.0
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
UNAUTHORIZED, NOT_FOUND = 401, 404
UNKNOWN_CODES = (40401, 40402, 40403)  # subject, version, schema
CAUSE_CHARACTERS = 300
GUID_REQUEST = "schema GUID"
"""Registries without GUIDs return 404 without a code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How to connect to a registry. retries: requests after the first one. timeout_s: of each, with its response."""

    basic_auth_user_info: str | None = field(default=None, repr=False)
    bearer_auth_token: str | None = field(default=None, repr=False)
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    timeout_s: float = 10.0
    retries: int = 4

    @staticmethod
    def from_text(properties: Mapping[str, str]) -> dict[str, Any]:
        """Return settings that are given as text: names may have dots, as in Confluent's clients."""
        named = {name.replace(".", "_"): value for name, value in properties.items()}
        numbers = ("timeout_s", "retries")
        return {name: int(text) if name in numbers and text.isdecimal() else text for name, text in named.items()}

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> HttpSettings:
        """Check the names and types of settings. Raises OptionError."""
        known = {each.name: each for each in fields(cls)}
        for name, value in settings.items():
            if name not in known:
                raise OptionError(f"unknown setting of a schema registry '{name}'{did_you_mean(name, known)}")
            expected = {"retries": int, "timeout_s": (int, float)}.get(name, str)
            if not isinstance(value, expected) or isinstance(value, bool):  # type: ignore[arg-type]
                raise OptionError(f"{name}: expected {known[name].type}, got {type(value).__name__}")
        made = cls(**settings)
        if made.timeout_s <= 0 or made.retries < 0:
            raise OptionError("timeout_s has to be above 0, retries 0 or more")
        if made.basic_auth_user_info is not None and made.bearer_auth_token is not None:
            raise OptionError("basic_auth_user_info and bearer_auth_token are mutually exclusive")
        if made.basic_auth_user_info is not None and ":" not in made.basic_auth_user_info:
            raise OptionError("basic_auth_user_info: expected USER:PASSWORD")
        if (made.ssl_key_location or made.ssl_key_password) and not made.ssl_certificate_location:
            raise OptionError("ssl_key_location requires ssl_certificate_location")
        return made


class HttpSource:
    """A registry at one or more URLs, separated by commas."""

    def __init__(self, urls: str, settings: HttpSettings) -> None:
        self.location, self._urls, user_info = _parse_urls(urls)
        self._headers = {"Accept": f"{CONTENT_TYPE}, application/json", "User-Agent": "kwire"}
        if user_info is not None:
            for name in ("basic_auth_user_info", "bearer_auth_token"):
                if getattr(settings, name) not in (None, user_info):
                    raise OptionError(f"{name}: the URL has a user already; remove one of both")
        basic = settings.basic_auth_user_info or user_info
        if basic is not None:
            import base64

            self._headers["Authorization"] = "Basic " + base64.b64encode(basic.encode()).decode()
        elif settings.bearer_auth_token is not None:
            self._headers["Authorization"] = f"Bearer {settings.bearer_auth_token}"
        self._pool = _open_pool(settings)
        if not any(url.lower().startswith("https:") for url in self._urls):
            for name in ("ssl_ca_location", "ssl_certificate_location"):
                if getattr(settings, name) is not None:
                    raise OptionError(f"{name}: connections to {self.location} are not encrypted; use https://")

    def by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id or GUID."""
        if isinstance(schema_id, str):
            known = RegisteredSchema(text="", guid=schema_id)
            return self._schema(f"/schemas/guids/{quote(schema_id, safe='')}", f"{GUID_REQUEST} {schema_id}", known)
        known = RegisteredSchema(text="", id=schema_id)
        return self._schema(f"/schemas/ids/{schema_id}", f"schema id {schema_id}", known)

    def by_version(self, subject: str, version: int) -> RegisteredSchema:
        """Return a version of a subject, or its latest one."""
        number = "latest" if version == LATEST else f"{version}?deleted=true"
        text = "" if version == LATEST else f" or its version {version}"
        return self._schema(f"/subjects/{quote(subject, safe='')}/versions/{number}", f"subject '{subject}'{text}")

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        subjects = self._request("GET", "/subjects", "list of subjects")
        if not isinstance(subjects, list) or not all(isinstance(each, str) for each in subjects):
            raise RegistryError("the list of subjects is not a list of strings", self.location)
        return sorted(subjects)

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, in ascending order."""
        versions = self._request("GET", f"/subjects/{quote(subject, safe='')}/versions", f"subject '{subject}'")
        if not isinstance(versions, list) or not all(isinstance(each, int) for each in versions):
            raise RegistryError(f"the versions of subject '{subject}' are not a list of numbers", self.location)
        return sorted(versions)

    def find(self, subject: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Return the registered form of a schema, with its id."""
        what = f"schema under subject '{subject}'; register it with Registry.register"
        return self._schema(f"/subjects/{quote(subject, safe='')}", what, body=_body(schema))

    def register(self, subject: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Register a schema, if it is new, and return its registered form."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        self._request("POST", path, f"subject '{subject}'", _body(schema))
        return self.find(subject, schema)

    def _schema(
        self, path: str, what: str, known: RegisteredSchema | None = None, body: dict[str, object] | None = None
    ) -> RegisteredSchema:
        response = self._request("POST" if body else "GET", path, what, body)
        return schema_from_json(response, self.location, known)

    def _request(self, method: str, path: str, what: str, body: dict[str, object] | None = None) -> object:
        """Return the JSON of a response. what: for the message if the registry does not know it."""
        import urllib3

        failures = list[str]()
        for url in self._urls:
            try:
                return self._send(method, url + path, what, body)
            except urllib3.exceptions.HTTPError as error:
                failures.append(f"{url}: {_cause(error)}")
        raise RegistryError(f"cannot be used: {'; '.join(failures)}", self.location)

    def _send(self, method: str, url: str, what: str, body: dict[str, object] | None) -> object:
        import urllib3

        headers = self._headers | ({"Content-Type": CONTENT_TYPE} if body else {})
        data = json.dumps(body).encode() if body else None
        response = self._pool.request(method, url, body=data, headers=headers, preload_content=False)
        try:
            content = bytearray()
            while chunk := response.read1(1 << 16):
                content += chunk
                if len(content) > MAX_RESPONSE_BYTES:
                    raise RegistryError(f"{what}: response larger than {MAX_RESPONSE_BYTES} bytes", self.location)
        finally:
            response.close()
        if response.status in REPEATED_STATUS:
            raise urllib3.exceptions.HTTPError(f"status {response.status}")
        if response.status >= 300:
            raise self._refusal(response.status, bytes(content), what)
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise RegistryError(f"{what}: response is not JSON; is it the URL of a registry?", self.location) from None

    def _refusal(self, status: int, content: bytes, what: str) -> RegistryError:
        """Return the error of a response without a schema."""
        if status == UNAUTHORIZED:
            return RegistryError(
                "status 401, not authorized; check basic_auth_user_info or bearer_auth_token", self.location
            )
        try:
            fields = json.loads(content)
            cause, code = str(fields["message"]), fields.get("error_code")
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            cause, code = content.decode("utf-8", "replace").strip(), None
        cause = f": {cause[:CAUSE_CHARACTERS]}" if cause else ""
        if status == NOT_FOUND and (code in UNKNOWN_CODES or what.startswith(GUID_REQUEST)):
            return UnknownSchema(f"unknown {what} (status 404{cause})", self.location)
        if status == NOT_FOUND:
            return RegistryError(f"{what}: status 404{cause}; is it the URL of a registry?", self.location)
        return RegistryError(f"{what}: status {status}{cause}", self.location)


def _open_pool(settings: HttpSettings) -> urllib3.PoolManager:
    with needing("schema registries"):
        import urllib3
    retries = urllib3.Retry(
        settings.retries,
        redirect=3,
        status_forcelist=REPEATED_STATUS,
        allowed_methods=None,  # all requests may be repeated: a schema is registered once
        backoff_factor=0.2,
        backoff_max=MAX_BACKOFF_S,
        backoff_jitter=0.1,
        respect_retry_after_header=False,  # it may ask for hours
        raise_on_status=False,
    )
    pool = urllib3.PoolManager(
        retries=retries, timeout=urllib3.Timeout(settings.timeout_s), ssl_context=_tls_context(settings)
    )
    pool.pool_classes_by_scheme = _pool_classes()
    return pool


def _pool_classes() -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Return urllib3's pools by scheme, with connections whose responses have to arrive as a whole before a timeout."""
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    from kwire.http_deadline import WholeResponse

    class Connection(HTTPConnection):
        response_class = WholeResponse

    class SecureConnection(HTTPSConnection):
        response_class = WholeResponse

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    return {"http": Pool, "https": SecurePool}


def _tls_context(settings: HttpSettings) -> ssl.SSLContext:
    name, path = "ssl_ca_location", settings.ssl_ca_location
    try:
        context = ssl.create_default_context(cafile=path)
        if settings.ssl_certificate_location is not None:
            name, path = "ssl_certificate_location", settings.ssl_certificate_location
            context.load_cert_chain(path, settings.ssl_key_location, settings.ssl_key_password)
    except (OSError, ValueError) as error:
        raise OptionError(f"{name}: {path}: {getattr(error, 'strerror', None) or error}") from None
    return context


def _parse_urls(urls: str) -> tuple[str, list[str], str | None]:
    """Return (location for messages, URLs without credentials, user:password or None)."""
    locations, users = list[str](), set[str]()
    for url in urls.split(","):
        expected = OptionError(f"'{without_user(url)}': expected http://HOST[:PORT][/PATH] or https://")
        try:
            parts = urlsplit(url.strip().rstrip("/"))
        except ValueError:  # half a pair of brackets
            raise expected from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise expected
        if parts.username is not None:
            users.add(f"{unquote(parts.username)}:{unquote(parts.password or '')}")
        locations.append(without_user(url.strip().rstrip("/")))
    if len(users) > 1:
        raise OptionError(f"{','.join(locations)}: the URLs have different users; requests to all of them have one")
    return ",".join(locations), locations, next(iter(users), None)


def _body(schema: RegisteredSchema) -> dict[str, object]:
    kept = ("schema", "schemaType", "references")
    return {name: value for name, value in schema.to_json().items() if name in kept}


def _cause(error: BaseException) -> str:
    """Return the innermost reason of an error of urllib3, without the names of its objects."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _cause(reason)
    return re.sub(r"^<?[\w.]*HTTPS?Connection\(.*?\)>?: ", "", str(error)) or repr(error)
