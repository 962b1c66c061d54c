"""A server of the protocol's library that asks for a sign-in, its own authorization server, and one that attacks."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, TypeAlias
from urllib.parse import urlencode

import attrs
import httpx2
import pytest
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.types import ASGIApp

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_kit.mcp_servers import LOGINS, ServerLogin

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Login = Callable[[str], AbstractAsyncContextManager[ServerLogin]]
Page: TypeAlias = tuple[int, dict[str, str], bytes]
REGISTERED: Final = b"""{"client_id": "me", "redirect_uris": ["http://127.0.0.1/"],
"token_endpoint_auth_method": "none"}"""


@attrs.define(eq=False)
class Issuer(
    OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]
):
    """Grants tokens to whoever asks, and remembers what was asked.

    Args:
        url: where it is.
        lasting: seconds that an access token lasts.
    """

    url: str
    lasting: int = 3600
    clients: dict[str, OAuthClientInformationFull] = attrs.field(factory=dict)
    codes: dict[str, AuthorizationCode] = attrs.field(factory=dict)
    access: dict[str, AccessToken] = attrs.field(factory=dict)
    refresh: dict[str, RefreshToken] = attrs.field(factory=dict)
    asked: list[AuthorizationParams] = attrs.field(factory=list)
    renewals: int = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.asked.append(params)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        fields = {"code": code.code, "state": params.state or "", "iss": self.url}
        return f"{params.redirect_uri}?{urlencode(fields)}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._granted(str(client.client_id), authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,
        refresh_token: RefreshToken,
        scopes: list[str],
    ) -> OAuthToken:
        # each counts once: a second use would end the whole grant
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.renewals += 1
        return self._granted(str(client.client_id), f"{self.url}/mcp")

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _granted(self, client: str, resource: str | None) -> OAuthToken:
        access, renewal = (f"tok-{secrets.token_urlsafe(24)}" for _ in range(2))
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=[], resource=resource
        )
        self.refresh[renewal] = RefreshToken(token=renewal, client_id=client, scopes=[])
        return OAuthToken(
            access_token=access,
            token_type="Bearer",  # the kind of token
            expires_in=self.lasting,
            refresh_token=renewal,
        )


@contextmanager
def guarded_server(lasting: int = 3600) -> Iterator[Issuer]:
    """Serve a tool to those who signed in; its address is the issuer's with `/mcp`."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    issuer = Issuer(url, lasting)
    server = MCPServer(
        "guarded",
        auth_server_provider=issuer,
        auth=AuthSettings.model_validate(
            {
                "issuer_url": url,
                "resource_server_url": f"{url}/mcp",
                "validate_token_resource": True,
                "client_registration_options": ClientRegistrationOptions(enabled=True),
            }
        ),
    )

    @server.tool(structured_output=False)
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    with serve(server.streamable_http_app(), listener):
        yield issuer


@contextmanager
def serve(app: ASGIApp, listener: socket.socket) -> Iterator[None]:
    """Serve an application in a thread."""
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


async def _browse(address: str, *, changed: dict[str, str] | None = None) -> None:
    """Do what a browser does: ask the authorization server, and follow where it leads."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.get(address)
        place = httpx2.URL(answer.headers["location"])
        for name, value in (changed or {}).items():
            place = place.copy_set_param(name, value)
        await client.get(place)


@pytest.fixture
def browse() -> Callable[..., Awaitable[None]]:  # type: ignore[explicit-any]  # options go by name
    """Sign in as a person with a browser does."""
    return _browse


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with guarded_server() as issuer:
        yield issuer


@pytest.fixture
def short_lived() -> Iterator[Issuer]:
    """An issuer whose tokens are over at once."""
    with guarded_server(lasting=1) as issuer:
        yield issuer


@pytest.fixture
def login(opened: Open) -> Callable[[str], AbstractAsyncContextManager[ServerLogin]]:
    """Open what signs in to the server at an address."""

    @asynccontextmanager
    async def login(url: str) -> AsyncGenerator[ServerLogin, None]:
        async with opened({"shop": {"url": url}}, start_timeout=0.01) as session:
            (logins,) = await session.coordinator.collect_contributions(LOGINS)
            assert isinstance(logins, list)
            found: ServerLogin = logins[0]
            yield found

    return login


class Metadata:
    """A server that asks for a sign-in, and whose metadata say what a test wants; `SITE` in them is its address."""

    def __init__(
        self, resource: Mapping[str, object], metadata: Mapping[str, object]
    ) -> None:
        self.paths: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.do_GET()

            def do_GET(self) -> None:
                site.paths.append(self.path)
                status, headers, body = site.answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        own = {"resource": "SITE/mcp", "authorization_servers": ["SITE"], **resource}
        self._resource, self._metadata = (
            json.dumps(each).replace("SITE", self.url).encode()
            for each in (own, metadata)
        )
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, path: str) -> Page:
        """Answer a request for a path."""
        kind = {"Content-Type": "application/json"}
        if path.startswith("/.well-known/oauth-protected-resource"):
            return 200, kind, self._resource
        if path.startswith("/.well-known/"):
            return 200, kind, self._metadata
        match path:
            case "/mcp":
                return 401, {"WWW-Authenticate": "Bearer"}, b""
            case "/register":
                return (
                    201,
                    kind,
                    REGISTERED,
                )
            case "/moved":
                return 302, {"Location": "http://localhost:1/elsewhere"}, b""
            case "/large":
                return 200, kind, b" " * (1 << 21)
            case _:
                return 404, {}, b""

    def close(self) -> None:
        """Stop to answer."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def sites() -> Iterator[Callable[..., Metadata]]:  # type: ignore[explicit-any]  # its arguments are the class's
    """Open servers that ask for a sign-in."""
    made: list[Metadata] = []

    def site(
        resource: Mapping[str, object], metadata: Mapping[str, object]
    ) -> Metadata:
        made.append(Metadata(resource, metadata))
        return made[-1]

    yield site
    for each in made:
        each.close()
