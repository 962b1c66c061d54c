"""Tokens that a command prints are kept as long as they hold."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from amplifier.testing import VirtualClock
from amplifier_module_provider_azure_openai.tokens import CommandTokens, read_token
from amplifier_sdk.errors import AuthenticationError
from amplifier_sdk.jsontypes import JSONObject

NOW = 1_795_269_000.0
HOUR = 3600.0


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S.%f")  # noqa: DTZ006  # as az prints it


@pytest.mark.parametrize(
    "printed",
    [
        {"accessToken": "ey.J", "expires_on": NOW + HOUR, "expiresOn": "never"},
        {"accessToken": "ey.J", "expiresOn": _local(NOW + HOUR)},
        {"token": "ey.J", "expiresOn": _utc(NOW + HOUR)},
        {"access_token": "ey.J", "expires_on": str(int(NOW + HOUR))},
    ],
    ids=["az", "old-az", "azd", "managed-identity"],
)
def test_a_token_is_used_until_five_minutes_before_its_end(printed: JSONObject) -> None:
    token = read_token(json.dumps(printed), now=NOW)

    assert token.text.reveal() == "ey.J"
    assert token.life == pytest.approx(HOUR - 300, abs=1)


@pytest.mark.parametrize(
    "printed",
    [
        "ey.J\n",
        '"ey.J"',
        '{"token": "ey.J"}',
        '{"token": "ey.J", "expiresOn": []}',
        '{"token": "ey.J", "expiresOn": "x"}',
    ],
    ids=["bare", "text", "object", "list", "words"],
)
def test_a_token_without_an_end_is_used_for_a_while(printed: str) -> None:
    token = read_token(printed, now=NOW)

    assert (token.text.reveal(), token.life) == ("ey.J", 150.0)


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "Please sign in",
        "{}",
        "[]",
        '{"token": 7}',
        "ey\u00fc",
        "ey\x07",
        "[" * 100_000,
    ],
    ids=["nothing", "words", "empty", "list", "number", "letters", "control", "deep"],
)
def test_what_is_no_token_is_refused_and_not_shown(printed: str) -> None:
    with pytest.raises(AuthenticationError, match="printed no token") as raised:
        read_token(printed, now=NOW)
    assert len(printed) < 3 or printed not in str(raised.value)


@pytest.mark.process
async def test_the_command_runs_once_for_all_who_wait(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    source = CommandTokens(["sh", "-c", f"echo >>{asked}; echo ey.J"], timeout=30)
    found: list[str] = []

    async def get() -> None:
        found.append((await source.get()).reveal())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(get)

    assert (found, asked.read_text()) == (["ey.J"] * 3, "\n")


def test_a_token_that_has_ended_is_asked_for_again(
    anyio_backend_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = CommandTokens(["unused"], timeout=30)
    printed = iter(["first", "second"])

    async def run(self: CommandTokens) -> str:
        return next(printed)

    monkeypatch.setattr(CommandTokens, "_run", run)

    async def scenario() -> list[str]:
        seen = [(await source.get()).reveal()]
        await anyio.sleep(149)
        seen.append((await source.get()).reveal())
        await anyio.sleep(2)
        return [*seen, (await source.get()).reveal()]

    assert VirtualClock().run(scenario, backend=anyio_backend_name) == [
        "first",
        "first",
        "second",
    ]


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "reported"),
    [
        (["sh", "-c", "exit 3"], "ended with status 3: it says nothing"),
        (
            ["sh", "-c", "echo No account. >&2; exit 1"],
            "ended with status 1: No account.",
        ),
        (["/no/such/program"], "cannot be run: .*No such file"),
    ],
    ids=["silent", "told", "missing"],
)
async def test_a_command_that_fails_says_so(command: list[str], reported: str) -> None:
    with pytest.raises(AuthenticationError, match=reported):
        await CommandTokens(command, timeout=30).get()


@pytest.mark.process
async def test_a_command_that_waits_for_somebody_is_ended() -> None:
    source = CommandTokens(["sh", "-c", "sleep 300"], timeout=0.05)

    with pytest.raises(AuthenticationError, match=r"\(sh\) had not ended after 0.05 s"):
        await source.get()


@pytest.mark.process
async def test_endless_output_is_no_token_and_takes_no_memory() -> None:
    source = CommandTokens(
        ["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' '\\t'"], timeout=30
    )

    with pytest.raises(AuthenticationError, match="printed no token"):
        await source.get()


@pytest.mark.process
async def test_a_cancelled_wait_ends_the_command_with_its_children(
    tmp_path: Path,
) -> None:
    # ends when nobody can write into it any more: neither the command nor its child
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    source = CommandTokens(
        ["sh", "-c", f"exec 3>{pipe}; echo started >&3; sleep 300 & wait"], timeout=60
    )

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(source.get)
            with await to_thread.run_sync(pipe.open, abandon_on_cancel=True) as said:
                assert (
                    await to_thread.run_sync(said.readline, abandon_on_cancel=True)
                    == "started\n"
                )
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    assert (
                        await to_thread.run_sync(said.read, abandon_on_cancel=True)
                        == ""
                    )
