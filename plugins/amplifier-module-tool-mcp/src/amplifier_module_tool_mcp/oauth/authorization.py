"""Signing in to one server, and the token that its requests carry from then on.

The protocol's library knows the steps: metadata of the server and of its authorization server, registration, a code
with a proof of possession, tokens and their renewal. Its requests are sent from here, one by one.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from logging import getLogger
from typing import Final

import anyio
import attrs
import httpx2
from anyio import to_thread
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from amplifier_kit.files.locks import WriterLock
from amplifier_kit.http.netguard import WebError
from amplifier_module_tool_mcp.answers import LoginNeededError
from amplifier_module_tool_mcp.oauth.grants import GrantStore, OAuthGrant, StoredIn
from amplifier_module_tool_mcp.oauth.redirects import RedirectListener
from amplifier_module_tool_mcp.oauth.requests import SignInRequests
from amplifier_module_tool_mcp.wire import MessageTooLargeError
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.secret import Secret

__all__ = ["Authorization", "Show"]

Show = Callable[[str], Awaitable[None]]
"""Shows the person the address at which they sign in."""

_SIGN_IN_SECONDS: Final = 300.0
_LOCK_SECONDS: Final = 30.0
_FAILURES: Final = (
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
    MessageTooLargeError,
    WebError,
    httpx2.HTTPError,
    ValueError,
)
# It writes what servers answer into its log.
getLogger("mcp.client.auth.oauth2").setLevel(100)


@attrs.define(eq=False, kw_only=True)
class Authorization:
    """The person's authorization at one server.

    Args:
        name: the server's name.
        url: its address.
        timeout: seconds that one request may take.
        public_only: whether the server must be public.
        grants: where grants are stored.
    """

    name: str
    url: str
    timeout: float
    public_only: bool
    grants: GrantStore = attrs.field(factory=GrantStore.in_home)
    _grant: OAuthGrant | None = None
    _is_read: bool = False
    _secrets: tuple[Secret, ...] = ()  # held, so that redactors know them
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def bearer(self, refused: str | None = None) -> str | None:
        """Return the token that requests carry; `None` where nobody signed in.

        Args:
            refused: a token that the server refused: another one is returned.

        Raises:
            LoginNeededError: it ended, and cannot be renewed.
        """
        async with self._lock:
            if self._is_read and not self._is_of_use(refused):
                self._is_read = False
            if not self._is_read:
                self._take(await to_thread.run_sync(self._stored))
                self._is_read = True
            if self._grant is not None and not self._is_of_use(refused):
                self._take(await self._renewed(refused))
            return None if self._grant is None else self._grant.access

    async def sign_in(self, show: Show, stored_in: StoredIn) -> None:
        """Let the person sign in, and store what is granted.

        Args:
            show: shows the address that the person opens in a browser of this machine.
            stored_in: where it is stored.

        Raises:
            AmplifierError: the server needs nobody to sign in, or it failed; says why.
        """
        if stored_in == "keyring":
            # before the person has signed in for nothing
            await to_thread.run_sync(self.grants.require_keyring)
        try:
            with anyio.fail_after(_SIGN_IN_SECONDS):
                grant = await self._signed_in(show)
        except TimeoutError as error:
            raise self._failed(
                f"nobody signed in within {_SIGN_IN_SECONDS:.0f} s"
            ) from error
        except WebError as error:
            raise self._failed(str(error)) from error
        if isinstance(grant, Exception):
            raise self._failed(str(grant) or type(grant).__name__) from grant
        await to_thread.run_sync(self.grants.set, self.url, grant, stored_in)

    def _failed(self, problem: str) -> AmplifierError:
        return AmplifierError(f"Signing in to {self.name} failed: {problem}")

    def _is_of_use(self, refused: str | None) -> bool:
        return (
            self._grant is not None
            and self._grant.access != refused
            and not self._grant.is_over(time.time())
        )

    def _stored(self) -> OAuthGrant | None:
        try:
            return self.grants.get(self.url)
        except (OSError, AmplifierError) as error:
            raise LoginNeededError(self.name, str(error)) from error

    def _take(self, grant: OAuthGrant | None) -> None:
        self._grant = grant
        texts = () if grant is None else grant.tokens.values()
        self._secrets = tuple(
            Secret(text) for text in texts if isinstance(text, str) and len(text) > 15
        )

    # -- renewal

    async def _renewed(self, refused: str | None) -> OAuthGrant:
        """Renew the token, unless another process has done so meanwhile: each renewal token counts once."""
        self.grants.file.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a file of its own, since the store takes the lock on its own file for each change
        target = self.grants.file.path.with_name("renewal")
        try:
            lock = await to_thread.run_sync(
                partial(WriterLock.take, target, timeout=_LOCK_SECONDS)
            )
        except OSError as error:
            raise LoginNeededError(self.name, str(error)) from error
        with lock:
            self._take(await to_thread.run_sync(self._stored))
            if self._grant is None:
                raise LoginNeededError(self.name)
            if self._is_of_use(refused):
                return self._grant
            renewed = await self._renew(self._grant)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self.grants.set, self.url, renewed)
            return renewed

    async def _renew(self, grant: OAuthGrant) -> OAuthGrant:
        stored = _StoredGrant(
            tokens=OAuthToken.model_validate(grant.tokens),
            client=OAuthClientInformationFull.model_validate(grant.client),
        )
        provider = OAuthClientProvider(
            self.url, OAuthClientMetadata(redirect_uris=None), stored
        )
        provider.context.oauth_metadata = OAuthMetadata.model_validate(grant.issuer)
        if grant.resource is not None:
            provider.context.protected_resource_metadata = (
                ProtectedResourceMetadata.model_validate(grant.resource)
            )
        # The library renews what has ended by its clock.
        provider.context.token_expiry_time = 1.0
        probe = _probe(self.url)
        async with (
            SignInRequests.about(
                self.url, self.timeout, public_only=self.public_only
            ) as requests,
            aclosing(provider.async_auth_flow(probe)) as flow,
        ):
            asked = await anext(flow)
            if asked is not probe:
                answer = await requests.send(asked)
                if answer.status_code >= 500 or answer.status_code == 429:
                    raise httpx2.RemoteProtocolError(
                        f"its authorization server answers with status {answer.status_code}"
                    )
                asked = await flow.asend(answer)
        if not stored.is_changed or asked is not probe:
            raise LoginNeededError(self.name)
        return _granted(provider, stored)

    # -- signing in

    async def _signed_in(self, show: Show) -> OAuthGrant | Exception:
        """Let the person sign in; a failure is returned, since a task group would wrap it."""
        async with (
            SignInRequests.about(
                self.url, self.timeout, public_only=self.public_only
            ) as requests,
            RedirectListener.open() as listener,
        ):
            stored = _StoredGrant()
            provider = self._provider(stored, requests, listener, show)
            try:
                status = await _drive(provider, _probe(self.url), requests)
            except _FAILURES as error:
                return error
            if not stored.is_changed:
                return ValueError(
                    f"it answers with status {status}, and asks nobody to sign in"
                )
            if status in (401, 403):
                return ValueError(
                    f"it refuses the token that was granted (status {status})"
                )
            return _granted(provider, stored)

    def _provider(
        self,
        stored: _StoredGrant,
        requests: SignInRequests,
        listener: RedirectListener,
        show: Show,
    ) -> OAuthClientProvider:
        async def ask(address: str) -> None:
            _require_proofs(provider.context.oauth_metadata)
            # A browser opens it: it must be a page, and none of this machine or its network.
            await requests.check(address)
            listener.expect(address)
            await show(address)

        async def wait() -> AuthorizationCodeResult:
            came = await listener.returned()
            if came.error is not None:
                raise OAuthFlowError(
                    f"the authorization server says {came.error!a:.100}"
                )
            return AuthorizationCodeResult(
                code=came.code, state=came.state, iss=came.issuer
            )

        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": "Amplifier",
                "redirect_uris": [listener.uri],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
            }
        )
        provider = OAuthClientProvider(self.url, metadata, stored, ask, wait)
        return provider


@attrs.define(eq=False)
class _StoredGrant:
    """What the library has of tokens and registrations during one of its flows."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    is_changed: bool = False

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens, self.is_changed = tokens, True

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def _drive(
    provider: OAuthClientProvider, probe: httpx2.Request, requests: SignInRequests
) -> int:
    """Send what the library asks for, and return the status of the server's last answer."""
    async with aclosing(provider.async_auth_flow(probe)) as flow:
        asked = await anext(flow)
        while True:
            # The server's own answer may be a stream without an end.
            answer = await requests.send(asked, with_body=asked is not probe)
            try:
                asked = await flow.asend(answer)
            except StopAsyncIteration:
                return answer.status_code


def _probe(url: str) -> httpx2.Request:
    """Make the request to which the server answers that somebody has to sign in."""
    message: JSONObject = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "amplifier", "version": "0.1"},
        },
    }
    return httpx2.Request(
        "POST",
        url,
        json=message,
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": LATEST_HANDSHAKE_VERSION,
        },
    )


def _require_proofs(metadata: OAuthMetadata | None) -> None:
    """Refuse an authorization server that says nothing of itself, or takes codes without a proof."""
    if metadata is None:
        raise OAuthFlowError("its authorization server publishes no metadata")
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise OAuthFlowError("its authorization server supports no PKCE with S256")


def _granted(provider: OAuthClientProvider, stored: _StoredGrant) -> OAuthGrant:
    context = provider.context
    assert stored.tokens is not None
    assert context.client_info is not None
    assert context.oauth_metadata is not None
    resource = context.protected_resource_metadata
    return OAuthGrant(
        tokens=_written(stored.tokens),
        expires_at=None
        if stored.tokens.expires_in is None
        else time.time() + stored.tokens.expires_in,
        client=_written(context.client_info),
        issuer=_written(context.oauth_metadata),
        resource=None if resource is None else _written(resource),
    )


def _written(
    model: OAuthToken
    | OAuthClientInformationFull
    | OAuthMetadata
    | ProtectedResourceMetadata,
) -> JSONObject:
    found: JSONObject = model.model_dump(mode="json", exclude_none=True, by_alias=True)
    return found
