"""Servers, authorization servers, pages and programs that attack a person who signs in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_kit.mcp_servers import ServerLogin
from amplifier_module_tool_mcp.oauth.redirects import RedirectListener
from amplifier_module_tool_mcp.oauth.requests import (
    AddressNotAllowedError,
    SignInRequests,
)
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Coroutine[Any, Any, str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]
Sites = Callable[..., Any]  # type: ignore[explicit-any]  # what it makes is conftest.py's
Issuer = Any  # type: ignore[explicit-any]  # what it is is conftest.py's
Browse = Callable[..., Awaitable[None]]  # type: ignore[explicit-any]  # options go by name
Login = Callable[[str], AbstractAsyncContextManager[ServerLogin]]


async def test_a_code_of_another_issuer_is_refused(
    issuer: Issuer, login: Login, browse: Browse
) -> None:
    async def mixed_up(address: str) -> None:
        await browse(address, changed={"iss": "https://evil.example"})

    async with login(f"{issuer.url}/mcp") as found:
        with pytest.raises(AmplifierError, match="iss mismatch"):
            await found.sign_in(mixed_up, "file")
    assert issuer.access == {}


async def test_a_browser_with_another_state_is_not_heard(
    issuer: Issuer, login: Login, browse: Browse
) -> None:
    async def forged(address: str) -> None:
        fields = parse_qs(urlsplit(address).query)
        uri = fields["redirect_uri"][0]
        state = fields["state"][0]
        async with httpx2.AsyncClient(trust_env=False) as client:
            for wrong in (
                f"{uri}?code=evil&state=evil",
                f"{uri}?code=evil",
                f"{uri}x?code=evil&state={state}",
                f"{uri}?code=evil&code=more&state={state}",
            ):
                assert (await client.get(wrong)).status_code in (400, 404)
            rebound = await client.get(
                f"{uri}?code=evil&state={state}", headers={"Host": "evil.example"}
            )
            assert rebound.status_code == 400
            posted = await client.post(f"{uri}?code=evil&state={state}")
            assert posted.status_code == 400
        await browse(address)

    async with login(f"{issuer.url}/mcp") as found:
        await found.sign_in(forged, "file")
    assert len(issuer.access) == 1


async def test_a_refusal_of_the_person_is_said(issuer: Issuer, login: Login) -> None:
    async def refuse(address: str) -> None:
        fields = parse_qs(urlsplit(address).query)
        async with httpx2.AsyncClient(trust_env=False) as client:
            await client.get(
                fields["redirect_uri"][0],
                params={"error": "access_denied", "state": fields["state"][0]},
            )

    async with login(f"{issuer.url}/mcp") as found:
        with pytest.raises(AmplifierError, match="access_denied"):
            await found.sign_in(refuse, "file")


RESOURCE = "/.well-known/oauth-protected-resource/mcp"
ISSUER = "/.well-known/oauth-authorization-server"


def _metadata(**changed: object) -> dict[str, object]:
    """What an authorization server on this machine says of itself, with some of it changed."""
    return {
        "issuer": "SITE",
        "authorization_endpoint": "SITE/authorize",
        "token_endpoint": "SITE/token",
        "registration_endpoint": "SITE/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        **changed,
    }


@pytest.mark.parametrize(
    ("resource", "metadata", "problem"),
    [
        ({"resource": "https://other.example/mcp"}, {}, "does not match"),
        ({}, {"issuer": "https://evil.example"}, "issuer mismatch"),
        ({}, {"code_challenge_methods_supported": ["plain"]}, "no PKCE"),
        (
            {},
            {"registration_endpoint": "http://169.254.169.254/latest"},
            "without https",
        ),
        ({}, {"registration_endpoint": "https://169.254.169.254/latest"}, "metadata"),
        (
            {},
            {"registration_endpoint": "https://[fe80::1]/latest"},
            "not public|public internet",
        ),
        ({}, {"registration_endpoint": "https://10.0.0.1/register"}, "private network"),
        (
            {},
            {"registration_endpoint": "http://evil.example/register"},
            "without https",
        ),
        ({}, {"registration_endpoint": "SITE/moved"}, "Registration failed: 302"),
        (
            {},
            {"authorization_endpoint": "http://evil.example/sign-in"},
            "without https",
        ),
        ({}, {"registration_endpoint": "SITE/large"}, "more than"),
        ({"authorization_servers": ["http://10.0.0.1:8080"]}, {}, "without https"),
    ],
)
async def test_a_server_that_leads_elsewhere_is_refused(
    sites: Sites,
    login: Login,
    resource: dict[str, object],
    metadata: dict[str, object],
    problem: str,
) -> None:
    hostile = sites(resource, _metadata(**metadata))
    shown: list[str] = []

    async def show(address: str) -> None:
        shown.append(address)

    async with login(f"{hostile.url}/mcp") as found:
        with pytest.raises(AmplifierError, match=problem):
            await found.sign_in(show, "file")
    assert shown == []
    assert not any("/elsewhere" in path for path in hostile.paths)


@pytest.mark.parametrize(
    ("server", "leads_to"),
    [
        ("https://93.184.216.34/mcp", "https://127.0.0.1:8443/token"),
        ("https://93.184.216.34/mcp", "https://192.168.1.1/token"),
        ("https://93.184.216.34/mcp", "http://93.184.216.34/token"),
        ("https://93.184.216.34/mcp", "https://me:word@93.184.216.34/token"),
        ("https://10.1.2.3/mcp", "https://169.254.169.254/token"),
        ("https://10.1.2.3/mcp", "https://127.0.0.1:9443/token"),
        ("http://127.0.0.1:8080/mcp", "http://10.1.2.3/token"),
        ("http://127.0.0.1:8080/mcp", "file:///etc/passwd"),
    ],
)
async def test_no_request_goes_further_inside(server: str, leads_to: str) -> None:
    async with SignInRequests.about(server, 5.0, public_only=False) as requests:
        await requests.check(server)
        with pytest.raises(AddressNotAllowedError):
            await requests.check(leads_to)


async def test_a_flood_of_the_redirect_s_port_is_bounded() -> None:
    async with RedirectListener.open() as listener:
        listener.expect("https://shop.example/?state=right")
        port = urlsplit(listener.uri).port
        assert port is not None
        with anyio.fail_after(10):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):
                    while True:
                        await stream.send(b"x" * 65536)
            async with httpx2.AsyncClient(trust_env=False) as client:
                await client.get(f"{listener.uri}?code=a&state=right")
            assert (await listener.returned()).code == "a"
