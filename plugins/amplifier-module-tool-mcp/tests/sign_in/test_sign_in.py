"""Signing in to a server at an address, with a real authorization server, and with those who attack the person."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_kit.keyrings import Keyring
from amplifier_kit.mcp_servers import ServerLogin
from amplifier_module_tool_mcp.oauth.grants import GrantStore
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Coroutine[Any, Any, str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]
Sites = Callable[..., Any]  # type: ignore[explicit-any]  # what it makes is conftest.py's
Issuer = Any  # type: ignore[explicit-any]  # what it is is conftest.py's
Browse = Callable[..., Awaitable[None]]  # type: ignore[explicit-any]  # options go by name
Login = Callable[[str], AbstractAsyncContextManager[ServerLogin]]


async def test_a_signed_in_person_s_session_has_the_tools(
    issuer: Issuer,
    opened: Open,
    login: Login,
    browse: Browse,
    text: Text,
    status: Status,
    home: Path,
) -> None:
    url = f"{issuer.url}/mcp"
    async with opened({"shop": {"url": url}}) as session:
        reported = await status(session, "shop")
        assert reported["state"] == "login"
        assert "amplifier mcp login shop" in str(reported["problem"])
    async with login(url) as found:
        await found.sign_in(browse, "file")
    async with opened({"shop": {"url": url}}) as session:
        assert await text(session, "mcp__shop__add", a=2, b=3) == "5"
    asked = issuer.asked[0]
    assert asked.resource == url
    assert str(asked.redirect_uri).startswith("http://127.0.0.1:")
    stored = home / "mcp" / "logins.json"
    assert stored.stat().st_mode & 0o777 == 0o600

    async with login(url) as found:
        assert await found.sign_out()
        assert not await found.sign_out()
    assert json.loads(stored.read_text()) == {}


async def test_tokens_are_renewed_and_rotated_for_all(
    short_lived: Issuer, opened: Open, login: Login, browse: Browse, text: Text
) -> None:
    url = f"{short_lived.url}/mcp"
    async with login(url) as found:
        await found.sign_in(browse, "file")
    first = GrantStore.in_home().get(url)
    async with (
        opened({"shop": {"url": url}}) as one,
        opened({"shop": {"url": url}}) as two,
        # Both would use the same renewal token, which counts once.
        anyio.create_task_group() as calls,
    ):
        for session in (one, two):
            calls.start_soon(partial(text, session, "mcp__shop__add", a=1, b=1))
    last = GrantStore.in_home().get(url)
    assert short_lived.renewals > 2
    assert first is not None
    assert last is not None
    assert first.tokens["refresh_token"] != last.tokens["refresh_token"]
    assert str(last.tokens["refresh_token"]) in short_lived.refresh


async def test_a_token_taken_back_early_is_renewed(
    issuer: Issuer, opened: Open, login: Login, browse: Browse, text: Text
) -> None:
    url = f"{issuer.url}/mcp"
    async with login(url) as found:
        await found.sign_in(browse, "file")
    async with opened({"shop": {"url": url}}) as session:
        issuer.access.clear()
        assert await text(session, "mcp__shop__add", a=1, b=1) == "2"
        assert issuer.renewals == 1


async def test_what_cannot_be_renewed_asks_to_sign_in_again(
    issuer: Issuer, opened: Open, login: Login, browse: Browse, failure: Text
) -> None:
    url = f"{issuer.url}/mcp"
    async with login(url) as found:
        await found.sign_in(browse, "file")
    async with opened({"shop": {"url": url}}) as session:
        issuer.access.clear()
        issuer.refresh.clear()
        assert "amplifier mcp login shop" in await failure(
            session, "mcp__shop__add", a=1, b=1
        )


async def test_tokens_are_in_no_log_and_no_settings(
    issuer: Issuer,
    login: Login,
    browse: Browse,
    home: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with login(f"{issuer.url}/mcp") as found:
        await found.sign_in(browse, "file")
    tokens = [*issuer.access, *issuer.refresh]
    holding = {
        path.name
        for path in home.rglob("*")
        if path.is_file() and any(token in path.read_text() for token in tokens)
    }
    assert holding == {"logins.json"}
    assert not any(token in caplog.text for token in tokens)


async def test_without_a_keyring_the_person_chooses(
    issuer: Issuer,
    login: Login,
    browse: Browse,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    monkeypatch.setattr(Keyring, "is_there", lambda _: False)
    async with login(f"{issuer.url}/mcp") as found:
        with pytest.raises(AmplifierError, match="--store-in file"):
            await found.sign_in(browse, "keyring")
    assert issuer.asked == []
    assert not (home / "mcp" / "logins.json").exists()


async def test_the_keyring_keeps_tokens(
    issuer: Issuer,
    opened: Open,
    login: Login,
    browse: Browse,
    text: Text,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    stored: dict[str, str] = {}
    monkeypatch.setattr(Keyring, "is_there", lambda _: True)
    monkeypatch.setattr(Keyring, "get", lambda _, name: stored.get(name))
    monkeypatch.setattr(
        Keyring, "set", lambda _, name, value: stored.update({name: value})
    )
    url = f"{issuer.url}/mcp"
    async with login(url) as found:
        await found.sign_in(browse, "keyring")
    async with opened({"shop": {"url": url}}) as session:
        assert await text(session, "mcp__shop__add", a=2, b=3) == "5"
    assert list(stored) == [url]
    assert json.loads((home / "mcp" / "logins.json").read_text()) == {url: {}}
