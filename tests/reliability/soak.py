"""Turns by the thousand in sessions of real modules, where now and then something goes wrong.

Everything random comes from one seed. What a turn may do is written down before it runs, so that afterwards every
effect can be accounted for: none without a call of the model, none twice, none from an answer that was not whole.
"""

from __future__ import annotations

import errno
import json
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import attrs
import httpx2
import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import mounting
from amplifier.testing.sessions import Mount
from amplifier.testing.transport import HttpAnswer, ScriptedTransport
from amplifier_module_context_persistent import mount as mount_context
from amplifier_module_hooks_logging import mount as mount_logging
from amplifier_module_hooks_otel import mount as mount_otel
from amplifier_module_hooks_redaction import mount as mount_redaction
from amplifier_module_provider_chat_completions import ChatCompletionsProvider
from amplifier_module_tool_bash import Bash
from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk import Coordinator, HookResult, JSONValue, ToolResult, tool
from amplifier_sdk.modules import definition_of
from tests.reliability.places import answering
from tests.reliability.turn import LOOPS

__all__ = ["FAULTS", "Life", "refusing_disk"]

PROVIDER_FAULTS: Final = (
    "busy",
    "throttled",
    "broken",
    "html",
    "cut",
    "silent",
    "too-long",
    "reset",
)
CALL_FAULTS: Final = ("unreadable", "wrong-type", "unknown-tool", "same-id", "huge")
TOOL_FAULTS: Final = ("raises", "groups", "exits", "nonsense", "hangs")
HOOK_FAULTS: Final = (
    "hook-raises",
    "hook-nonsense",
    "hook-exits",
    "hook-hangs",
    "hook-denies",
    "hook-mutates",
)
OTHER_FAULTS: Final = ("disk", "cancel", "cancel-twice")
FAULTS: Final = (
    *PROVIDER_FAULTS,
    *CALL_FAULTS,
    *TOOL_FAULTS,
    *HOOK_FAULTS,
    *OTHER_FAULTS,
)
HOOKED: Final = (
    "prompt:submit",
    "provider:request",
    "provider:response",
    "tool:pre",
    "tool:post",
    "prompt:complete",
)

HOOKS: Final = {
    "hooks-redaction": mount_redaction,
    "hooks-logging": mount_logging,
    "hooks-otel": mount_otel,
}
LIMITS: Final = {
    "hook_timeout": 0.05,
    "provider_idle_timeout": 0.05,
    "tool_timeout": 5.0,
    "iterations": 8,
    "cleanup_timeout": 5.0,
}


@attrs.define(eq=False)
class Life:
    """One session's life: its folder, its modules, and what its turns may do.

    `allowed` are the effects that the model asked for in whole answers; `done` those that happened.
    """

    folder: Path
    dice: random.Random
    loop: str = ""
    hooks: tuple[str, ...] = ()
    number: int = 0
    answers: list[HttpAnswer | Exception] = attrs.field(factory=list)
    allowed: set[str] = attrs.field(factory=set)
    done: list[str] = attrs.field(factory=list)
    faults: frozenset[str] = frozenset()
    cancel_at: int = -1
    heard: int = 0
    stop: anyio.Event | None = None

    def __attrs_post_init__(self) -> None:
        self.loop = self.dice.choice(sorted(LOOPS))
        self.hooks = tuple(name for name in HOOKS if self.dice.random() < 0.4)

    def open(self, *, is_resumed: bool) -> AmplifierSession:
        """Make the session, which goes on where it stopped."""
        plan: dict[str, object] = {
            "session": {"orchestrator": "loop", "context": "context", "limits": LIMITS},
            "providers": [
                {
                    "module": "provider",
                    "config": {
                        "base_url": "http://stub.invalid/v1",
                        "default_model": "m",
                        "max_retries": 2,
                        "min_retry_delay": 0.001,
                        "max_retry_delay": 0.01,
                    },
                }
            ],
            "tools": [
                "act",
                "block",
                "tool-filesystem",
                {
                    "module": "tool-bash",
                    "config": {
                        "default_rules": False,
                        "unlisted": "allow",
                        "sandbox": "none",
                    },
                },
            ],
            "hooks": [*self.hooks, "chaos"],
        }
        modules: dict[str, object] = {
            "loop": LOOPS[self.loop],
            "context": mount_context,
            "provider": self._provider(),
            "act": self._act(),
            "block": self._block(),
            "tool-filesystem": Filesystem,
            "tool-bash": Bash,
            **HOOKS,
            "chaos": self._chaos(),
        }
        session = AmplifierSession(
            plan, ModuleLoader(modules=modules, path=[]), "life", is_resumed=is_resumed
        )
        session.coordinator.register_capability("session.dir", str(self.folder))
        session.coordinator.register_capability(
            "session.working_dir", str(self.folder / "work")
        )
        return session

    def prepare(self, share: float) -> None:
        """Write the next turn's script, with faults of which each happens with a share of the turns."""
        self.number += 1
        dice = self.dice
        self.faults = frozenset(fault for fault in FAULTS if dice.random() < share)
        self.heard, self.cancel_at = (
            0,
            dice.randrange(1, 16) if self.faults & {"cancel", "cancel-twice"} else -1,
        )
        self.stop = anyio.Event()
        self.answers = [
            self._calling(step) for step in range(dice.choice((0, 1, 1, 2)))
        ]
        self.answers.append(answering(text=f"Answer {self.number}."))
        spoiled = self.faults & set(PROVIDER_FAULTS)
        if spoiled:
            self._spoil(min(spoiled), dice.randrange(len(self.answers)))

    def _calling(self, step: int) -> HttpAnswer:
        calls = []
        for index in range(self.dice.choice((1, 1, 2, 3))):
            key = f"t{self.number}-s{step}-c{index}"
            name, given = self._asked(key)
            if name in ("act", "block"):
                self.allowed.add(key)
            calls.append((key, name, json.dumps(given)))
        for fault in sorted(self.faults & set(CALL_FAULTS)):
            self._damage(calls, fault)
        return answering(*calls, text="I work.")

    def _asked(self, key: str) -> tuple[str, JSONValue]:
        kind = self.dice.random()
        if kind < 0.03:
            return "bash", {"command": f"echo {key}"}
        if kind < 0.2:
            return "write_file", {
                "file_path": f"{key[-2:]}-{self.number}.txt",
                "content": key,
            }
        return ("act" if kind < 0.8 else "block"), {"key": key}

    def _damage(self, calls: list[tuple[str, str, str]], fault: str) -> None:
        id, _, _ = calls[0]
        if fault != "same-id":
            self.allowed.discard(id)
        match fault:
            case "unreadable":
                calls[0] = (id, "act", '{"key": "cut')
            case "wrong-type":
                calls[0] = (id, "act", '{"key": 5}')
            case "unknown-tool":
                calls[0] = (id, "no_such_tool", "{}")
            case "huge":
                key = f"{id}-{'x' * 50_000}"
                calls[0] = (id, "act", json.dumps({"key": key}))
                self.allowed.add(key)
            case _:
                self.allowed.add(f"{id}-again")
                calls.append((id, "act", json.dumps({"key": f"{id}-again"})))

    def _spoil(self, fault: str, index: int) -> None:
        """Let something go wrong with a request: some pass when it is sent again, of the others the answer is lost."""
        whole = self.answers[index]
        assert isinstance(whole, HttpAnswer)
        (body,) = whole.parts
        assert isinstance(body, bytes)
        match fault:
            case "busy":
                self.answers.insert(index, HttpAnswer(status=503, parts=(b"{}",)))
            case "throttled":
                self.answers.insert(
                    index,
                    HttpAnswer(
                        status=429, headers={"retry-after": "0"}, parts=(b"{}",)
                    ),
                )
            case "reset":
                self.answers.insert(index, httpx2.ReadError("reset"))
            case "broken":
                self.answers[index:] = [HttpAnswer(status=500, parts=(b"{}",))] * 3
            case "html":
                page = HttpAnswer(
                    headers={"content-type": "text/html"},
                    parts=(b"<html>Sign in</html>",),
                )
                self.answers[index:] = [page] * 3
            case "cut":
                self.answers[index:] = [HttpAnswer(parts=(body[: len(body) // 2],))] * 3
            case "silent":
                self.answers[index:] = [
                    HttpAnswer(parts=(body[: len(body) // 3], 60.0))
                ] * 3
            case _:
                self.answers[index:] = [
                    HttpAnswer(parts=(body.replace(b'"tool_calls"}', b'"length"}'),))
                ]
                self.answers.append(answering(text="Cut."))
        if fault in ("broken", "html", "cut", "silent", "too-long"):
            self.allowed -= {
                key
                for key in self.allowed
                if key.startswith(f"t{self.number}-s") and _step(key) >= index
            }

    # -- modules

    def _act(self) -> object:
        @tool
        async def act(key: str) -> object:
            """Have an effect."""
            self.done.append(key)
            if self.faults & set(TOOL_FAULTS):
                return await _misbehave(min(self.faults & set(TOOL_FAULTS)))
            return f"did {key[:40]}"

        return act

    def _block(self) -> object:
        @tool
        def block(key: str) -> str:
            """Have an effect in a thread."""
            self.done.append(key)
            return f"did {key[:40]}"

        return block

    def _provider(self) -> Mount:
        def next_answer(request: httpx2.Request) -> HttpAnswer:
            answer = (
                self.answers.pop(0) if self.answers else answering(text="Nothing more.")
            )
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def mount(
            coordinator: Coordinator, config: Mapping[str, JSONValue]
        ) -> object:
            definition = definition_of(ChatCompletionsProvider)
            assert definition is not None
            built = definition.build(coordinator, config)
            assert isinstance(built, ChatCompletionsProvider)
            built.transport = ScriptedTransport(next_answer)
            return await mounting(built)(coordinator, config)

        return mount

    def _chaos(self) -> Mount:
        async def mount(
            coordinator: Coordinator, config: Mapping[str, JSONValue]
        ) -> None:
            def count(event: str, data: dict[str, object]) -> None:
                self.heard += 1
                if self.heard == self.cancel_at and self.stop is not None:
                    self.stop.set()

            async def misbehave(
                event: str, data: dict[str, object]
            ) -> HookResult | None:
                faults = sorted(self.faults & set(HOOK_FAULTS))
                return await _misjudge(faults[0], data) if faults else None

            coordinator.hooks.register("*", count, name="count", decides=False)
            for event in HOOKED:
                coordinator.hooks.register(event, misbehave, name="chaos", timeout=0.05)

        return mount


def _step(key: str) -> int:
    """Return the number of the answer that asked for an effect."""
    return int(key.split("-")[1].removeprefix("s"))


async def _misbehave(fault: str) -> object:
    match fault:
        case "raises":
            raise ValueError("no")
        case "groups":
            raise ExceptionGroup("no", [ValueError("no"), OSError("no")])
        case "exits":
            raise SystemExit(3)
        case "hangs":
            with anyio.move_on_after(0.02):
                await anyio.sleep_forever()
            raise TimeoutError
        case _:
            return ToolResult(output={"nonsense": [None] * 10})


async def _misjudge(fault: str, data: dict[str, object]) -> HookResult | None:
    match fault:
        case "hook-raises":
            raise ValueError("no")
        case "hook-exits":
            raise SystemExit(3)
        case "hook-hangs":
            await anyio.sleep_forever()
        case "hook-nonsense":
            return 42  # type: ignore[return-value]  # that is the point
        case "hook-mutates":
            data.clear()
        case _:
            return HookResult.deny("not today")
    return None


@contextmanager
def refusing_disk(life: Life, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse the conversation's file one write, if that is among the turn's faults."""
    if "disk" not in life.faults:
        yield
        return
    write, place = os.write, life.dice.randrange(1, 5)
    left = [place]

    def refuse(handle: int, data: bytes) -> int:
        if (
            os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))
            == "context-messages.jsonl"
        ):
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        yield
