"""The client side of OAUTHBEARER: sources of tokens, and the initial response with a token.

    config                                        source of tokens
    sasl.oauthbearer.token.env                    an environment variable
    sasl.oauthbearer.token.endpoint.url=file:...  a file (Kafka's FileJwtRetriever)
    sasl.oauthbearer.token.endpoint.url=https:... a token endpoint (Kafka's ClientCredentialsJwtRetriever)
    sasl.oauthbearer.token.callback               a Python function without arguments, or its name as module:function
    unsecuredLogin... in sasl.jaas.config         unsigned tokens for tests (OAuthBearerUnsecuredLoginCallbackHandler)

Variables and files are read for each connection, so that renewed tokens are used. Tokens of an endpoint are cached for
80 percent of their lifetime.
Source: RFC 7628, RFC 6749 (4.4), KIP-255, KIP-768, KIP-1139.
"""

from __future__ import annotations

import base64
import importlib
import json
import logging
import os
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kwire.errors import OptionError
from kwire.identifiers import decode_base64url

if TYPE_CHECKING:
    from urllib.request import Request

__all__ = ["OAuthConfigs", "TokenSource", "choose_source", "expiry_of", "initial_response", "unsecured_token"]

MAX_TOKEN_BYTES = 1 << 20
USED_LIFETIME = 0.8  # sasl.login.refresh.window.factor
WITHOUT_EXPIRY_S = 60.0
HANDLERS = frozenset({"OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler"})
RETRIEVERS = frozenset({"DefaultJwtRetriever", "FileJwtRetriever", "ClientCredentialsJwtRetriever"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CREDENTIALS = frozenset({"clientId", "clientSecret", "scope"})
"""Options of sasl.jaas.config for a token endpoint."""
UNSECURED = frozenset({f"unsecuredLogin{name}" for name in ("LifetimeSeconds", "PrincipalClaimName", "ScopeClaimName")})
BEGINNINGS = (
    "extension_",
    *(f"unsecuredLogin{name}_" for name in ("Extension", "ListClaim", "NumberClaim", "StringClaim")),
)
LOGGER = logging.getLogger("kwire.client")
SETTING = "sasl.oauthbearer.token.endpoint.url"


@dataclass(slots=True)
class TokenSource:
    """A source of tokens. extensions: SASL extensions, sent with each token. is_cached: whether to cache tokens."""

    retrieve: Callable[[], str]
    extensions: Mapping[str, str] = field(default_factory=dict)
    is_cached: bool = False
    _cached: str = field(default="", repr=False)
    _cached_until: float = 0.0

    def token(self) -> str:
        """Return a token for a new connection. Raises OptionError with the reason if there is none."""
        if self._cached and time.time() < self._cached_until:
            return self._cached
        given: object = self.retrieve()
        token = given.strip() if isinstance(given, str) else ""
        if not token or not token.isascii() or any(not each.isprintable() or each == " " for each in token):
            raise OptionError("OAUTHBEARER token is empty or invalid: expected text of visible ASCII characters")
        if self.is_cached:
            now = time.time()
            expiry = expiry_of(token)
            lifetime = WITHOUT_EXPIRY_S if expiry is None else (expiry - now) * USED_LIFETIME
            self._cached, self._cached_until = token, now + lifetime
        return token


def initial_response(token: str, extensions: Mapping[str, str]) -> bytes:
    """Encode the client's first message (RFC 7628, 3.1)."""
    pairs = "".join(f"{name}={value}\x01" for name, value in {"auth": f"Bearer {token}", **extensions}.items())
    return f"n,,\x01{pairs}\x01".encode()


def expiry_of(token: str) -> float | None:
    """Return when a JWT expires, in seconds since the epoch; None without expiry, or for other kinds of tokens."""
    parts = token.split(".")
    try:
        return float(json.loads(decode_base64url(parts[1]))["exp"])
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def unsecured_token(claims: Mapping[str, object]) -> str:
    """Make an unsigned JWS with these claims, for tests: it proves nothing."""

    def part(value: Mapping[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthConfigs:
    """Client configs of OAUTHBEARER."""

    callback: str | Callable[[], str] | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    connect_timeout_ms: int = 10_000
    endpoint_url: str | None = None
    handler: str = ""
    read_timeout_ms: int = 10_000
    retriever: str = ""
    scope: str | None = None
    token_env: str | None = None
    urlencode: bool = False


def choose_source(configs: OAuthConfigs, jaas: Mapping[str, str]) -> TokenSource:
    """Choose the token source of a client. jaas: options of the login module.

    Raises OptionError unless there is exactly one source.
    """
    token_env, callback, url = configs.token_env, configs.callback, configs.endpoint_url
    for name, given, known in (
        ("sasl.login.callback.handler.class", configs.handler, HANDLERS),
        ("sasl.oauthbearer.jwt.retriever.class", configs.retriever, RETRIEVERS),
    ):
        if given and given.rpartition(".")[2] not in known:
            raise OptionError(
                f"config '{name}': Java classes cannot be loaded; supported values: {', '.join(sorted(known))}; set "
                "sasl.oauthbearer.token.callback to use a Python function"
            )
    check_options(jaas, is_endpoint=(url or "").lower().startswith("http"))
    extensions = {
        name.removeprefix(prefix): value
        for prefix in ("extension_", "unsecuredLoginExtension_")
        for name, value in jaas.items()
        if name.startswith(prefix)
    }
    unsecured = {name: value for name, value in jaas.items() if name.startswith("unsecuredLogin")}
    sources = [
        name
        for name, value in (
            ("sasl.oauthbearer.token.env", token_env),
            ("sasl.oauthbearer.token.callback", callback),
            (SETTING, url),
            ("unsecuredLogin... of sasl.jaas.config", unsecured),
        )
        if value
    ]
    if len(sources) != 1:
        what = f"several token sources are set ({', '.join(sources)})" if sources else "no token source is set"
        raise OptionError(
            f"config 'sasl.mechanism' OAUTHBEARER: {what}; set one of sasl.oauthbearer.token.env, "
            "sasl.oauthbearer.token.callback and sasl.oauthbearer.token.endpoint.url (file:, http: or https:)"
        )
    if token_env:
        return TokenSource(lambda: from_environment(token_env), extensions)
    if callback:
        return TokenSource(callback if callable(callback) else load_callback(callback), extensions)
    if unsecured:
        return TokenSource(lambda: unsecured_login(unsecured), extensions)
    assert url is not None
    parts = split_url(url)
    if parts is not None and parts.scheme == "file":
        from urllib.request import url2pathname  # imported here and below: a tenth of what a client imports

        path = Path(url2pathname(parts.path))
        return TokenSource(lambda: from_file(path), extensions)
    if parts is None or parts.scheme not in ("http", "https"):
        raise OptionError(f"config '{SETTING}': expected a file:, http: or https: URL")
    client_id = configs.client_id or jaas.get("clientId")
    client_secret = configs.client_secret or jaas.get("clientSecret")
    if not client_id or not client_secret:
        raise OptionError(
            f"config '{SETTING}': client credentials are missing; set "
            "sasl.oauthbearer.client.credentials.client.id and sasl.oauthbearer.client.credentials.client.secret, or "
            "clientId and clientSecret in sasl.jaas.config"
        )
    endpoint = Endpoint(
        url=url,
        client_id=client_id,
        client_secret=client_secret,
        scope=configs.scope or jaas.get("scope"),
        connect_timeout_ms=configs.connect_timeout_ms,
        read_timeout_ms=configs.read_timeout_ms,
        must_encode=configs.urlencode,
    )
    return TokenSource(endpoint.grant, extensions, is_cached=True)


def check_options(jaas: Mapping[str, str], *, is_endpoint: bool) -> None:
    """Warn of options of a login module that have no effect. Raises OptionError for TLS options."""
    for name in jaas:
        if name.startswith("ssl."):
            raise OptionError(
                f"config 'sasl.jaas.config': option {name} is not supported, because the token endpoint is verified "
                "with the certificates of this machine; set SSL_CERT_FILE in the environment, or "
                "sasl.oauthbearer.token.callback"
            )
    known = UNSECURED | CREDENTIALS if is_endpoint else UNSECURED
    if idle := [name for name in jaas if name not in known and not name.startswith(BEGINNINGS)]:
        LOGGER.warning("config 'sasl.jaas.config': options without effect: %s", ", ".join(idle))


def split_url(url: str) -> urllib.parse.SplitResult | None:
    """Return the parts of a URL, None if it is none."""
    try:
        return urllib.parse.urlsplit(url)
    except ValueError:  # half a pair of brackets
        return None


def from_environment(name: str) -> str:
    """Read a token from an environment variable. Raises OptionError."""
    try:
        return os.environ[name]
    except KeyError:
        raise OptionError(f"config 'sasl.oauthbearer.token.env': environment variable {name} is not set") from None


def from_file(path: Path) -> str:
    """Read a token from a file. Raises OptionError."""
    try:
        return path.read_text("ascii")
    except (OSError, ValueError) as error:
        raise OptionError(f"config '{SETTING}': {path} cannot be read: {error}") from None


def load_callback(name: str) -> Callable[[], str]:
    """Import the function named `module:function`. Raises OptionError."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise OptionError("config 'sasl.oauthbearer.token.callback': expected module:function")
    try:
        callback: object = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, TypeError) as error:  # TypeError: a relative name
        raise OptionError(f"config 'sasl.oauthbearer.token.callback': {error}") from None
    if not callable(callback):
        raise OptionError(f"config 'sasl.oauthbearer.token.callback': {name} is not a function")
    return cast("Callable[[], str]", callback)


def unsecured_login(options: Mapping[str, str]) -> str:
    """Make an unsigned token with the claims of Kafka's unsecuredLogin... options. Raises OptionError."""
    now = time.time()
    try:
        lifetime_s = float(options.get("unsecuredLoginLifetimeSeconds", "3600"))
        issued_s = int(now * 1000) / 1000  # rounded down: brokers reject a token issued in the future
        claims: dict[str, Any] = {"iat": issued_s, "exp": round(now + lifetime_s, 3)}
        for name, value in options.items():
            kind, _, claim = name.removeprefix("unsecuredLogin").partition("_")
            if kind == "StringClaim":
                claims[claim] = value
            elif kind == "NumberClaim":
                claims[claim] = float(value)
            elif kind == "ListClaim":
                claims[claim] = value[1:].split(value[0]) if value else []
    except ValueError as error:
        raise OptionError(f"config 'sasl.jaas.config': unsecuredLogin option is not a number: {error}") from None
    principal = options.get("unsecuredLoginPrincipalClaimName", "sub")
    if not claims.get(principal):
        raise OptionError(f"config 'sasl.jaas.config': option unsecuredLoginStringClaim_{principal} is required")
    return unsecured_token(claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A token endpoint for client credentials.

    connect_timeout_ms: of each address, TLS included. read_timeout_ms: of the whole response (in Java, of each read).
    must_encode: URL-encode the credentials before base64 (RFC 6749).
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    connect_timeout_ms: int
    read_timeout_ms: int
    must_encode: bool

    def grant(self) -> str:
        """Request a token; redirects are not followed. Raises OptionError with the reason, but without the secret."""
        from http.client import HTTPException
        from urllib.request import Request

        name, secret = self.client_id, self.client_secret
        if self.must_encode:
            name, secret = urllib.parse.quote_plus(name), urllib.parse.quote_plus(secret)
        form = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        request = Request(
            self.url,
            data=urllib.parse.urlencode(form).encode(),
            headers={
                "Accept": "application/json",
                "Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode(),
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        try:
            code, target, content = self._send(request)
            if 200 <= code < 300:
                response = json.loads(content)
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            what = str(getattr(error, "reason", None) or error) or type(error).__name__
            raise OptionError(f"config '{SETTING}': cannot get a token from {self.url}: {what[:300]}") from None
        if not 200 <= code < 300:
            if code in REDIRECTS and target:
                parts = urllib.parse.urlsplit(urllib.parse.urljoin(self.url, target))
                place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:300]
                what = (
                    f"redirects to {place!r}, which would get the client's secret; set the URL of the endpoint itself"
                )
                raise OptionError(f"config '{SETTING}': {self.url} {what}")
            reason = content[:1000].decode("utf-8", "replace")
            raise OptionError(f"config '{SETTING}': request to {self.url} failed: HTTP {code} {reason}")
        token = response.get("access_token") if isinstance(response, dict) else None
        if not isinstance(token, str) or not token:
            raise OptionError(f"config '{SETTING}': response of {self.url} has no access_token")
        return token

    def _send(self, request: Request) -> tuple[int, str | None, bytes]:
        """Return status, location and the first MAX_TOKEN_BYTES of a response. Raises OSError, HTTPException."""
        from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
        from urllib.error import HTTPError
        from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, build_opener

        from kwire.http_deadline import WholeResponse

        read_timeout_s = self.read_timeout_ms / 1000

        class Connection(HTTPConnection):
            response_class = WholeResponse

            def connect(self) -> None:
                super().connect()
                self.sock.settimeout(read_timeout_s)

        class SecureConnection(HTTPSConnection):
            response_class = WholeResponse

            def connect(self) -> None:
                super().connect()
                self.sock.settimeout(read_timeout_s)

        class Plain(HTTPHandler):
            def http_open(self, req: Request) -> HTTPResponse:
                return self.do_open(Connection, req)

        class Secure(HTTPSHandler):
            def https_open(self, req: Request) -> HTTPResponse:
                return self.do_open(SecureConnection, req)

        class NoRedirects(HTTPRedirectHandler):
            """urllib would send the secret to any host, and without TLS."""

            def redirect_request(self, *_: object) -> None:
                return None

        opener = build_opener(NoRedirects, Plain, Secure)
        try:
            opened = opener.open(request, timeout=self.connect_timeout_ms / 1000)
        except HTTPError as error:
            opened = error
        with opened:
            return opened.status, opened.headers.get("Location"), opened.read(MAX_TOKEN_BYTES)
