"""Hooks that break what holds of hooks: each entry fails at least the behaviour it stands under."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors import Subject
from amplifier_sdk import Coordinator, HookResult
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["FAULTY"]

Handler: TypeAlias = Callable[[str, dict[str, object]], Awaitable[object] | object]
Register: TypeAlias = Callable[[Coordinator], object]


def _registering(*registers: Register) -> Subject:
    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        for register in registers:
            coordinator.register_cleanup(register(coordinator))  # type: ignore[arg-type]

    return Subject(kind="hook", module=mount)


def _on(event: str, handler: Handler, **more: object) -> Register:
    return lambda c: c.hooks.register(event, handler, **more)  # type: ignore[call-overload]


def _hearing(handler: Handler, event: str = "tool:pre") -> Subject:
    """Make a hook of one handler."""
    return _registering(_on(event, handler))


def _answering(result: object, event: str = "tool:pre") -> Subject:
    """Make a hook that always answers the same."""

    async def answer(event: str, data: dict[str, object]) -> object:
        return result

    return _hearing(answer, event)


def _doing(work: Callable[[dict[str, object]], object], event: str = "*") -> Subject:
    """Make a hook that does something with the data."""

    async def handle(event: str, data: dict[str, object]) -> None:
        work(data)

    return _hearing(handle, event)


async def _ignore(event: str, data: dict[str, object]) -> None:
    """Hear nothing."""


async def _one_argument(event: str) -> None:
    """Take too little."""


def _every_other_time() -> Subject:
    mounted: list[Coordinator] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        if len(mounted) % 2 == 0:
            coordinator.register_cleanup(
                coordinator.hooks.register("tool:pre", _ignore)
            )
        mounted.append(coordinator)

    return Subject(kind="hook", module=mount)


def _in_the_first_session() -> Subject:
    mounted: list[Coordinator] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        mounted.append(coordinator)
        coordinator.register_cleanup(
            mounted[-2:][0].hooks.register(
                "tool:pre", _ignore, name=f"guard {len(mounted)}"
            )
        )

    return Subject(kind="hook", module=mount)


async def _echo(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    calls: list[str] = []

    async def handle(event: str, data: dict[str, object]) -> None:
        calls.append(event)
        if len(calls) % 2:
            await coordinator.hooks.emit("tool:pre", data)

    coordinator.register_cleanup(coordinator.hooks.register("tool:pre", handle))


async def _sleep(event: str, data: dict[str, object]) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.5)


def _crowded() -> Subject:
    inside: list[str] = []

    async def handle(event: str, data: dict[str, object]) -> None:
        inside.append(event)
        try:
            await anyio.lowlevel.checkpoint()
            if len(inside) > 1:
                raise RuntimeError("too crowded")
        finally:
            inside.pop()

    return _hearing(handle)


def _change(data: dict[str, object]) -> None:
    arguments = data.get("tool_input")
    if isinstance(arguments, dict):
        arguments["seen"] = True


def _need(*keys: str) -> Subject:
    def read(data: dict[str, object]) -> None:
        for key in keys:
            data[key]

    return _doing(read, "tool:pre")


def _read_path(data: dict[str, object]) -> None:
    arguments = data["tool_input"]
    assert isinstance(arguments, dict)
    arguments.get("file_path", "").lower()


def _slow_with_texts(data: dict[str, object]) -> None:
    text = str(data.get("prompt"))
    for start in range(0, len(text), 1_000):
        text[start:].upper()


def _walk(value: object) -> None:
    if isinstance(value, list):
        _walk(value[0])
    elif isinstance(value, dict):
        for part in value.values():
            _walk(part)


def _strict(data: dict[str, object]) -> None:
    if not data.get("session_id") and "anything" in data:
        raise KeyError("session_id")


FAILS: Final = partial(_doing, lambda data: 1 / 0)

FAULTY: Final[Mapping[str, Subject]] = {
    "hook.hears-something": _registering(),
    "hook.hears-events-that-exist": _hearing(_ignore, "tool:before"),
    "hook.hears-each-event-once": _registering(
        *[_on("tool:pre", _ignore, name="guard")] * 2
    ),
    "hook.names-its-handlers": _hearing(lambda event, data: None),
    "hook.takes-an-event-and-its-data": _hearing(_one_argument),  # type: ignore[arg-type]
    "hook.has-numbers-as-priorities": _registering(
        _on("tool:pre", _ignore, priority=1.5)
    ),
    "hook.hears-in-every-session": _every_other_time(),
    "hook.hears-its-own-session-alone": _in_the_first_session(),
    "hook.serves-a-turn": FAILS("prompt:submit"),
    "hook.serves-a-turn-with-a-failing-tool": FAILS("tool:error"),
    "hook.serves-a-turn-that-fails": FAILS("provider:error"),
    "hook.serves-a-turn-that-is-cancelled": FAILS("cancel:requested"),
    "hook.does-not-answer-itself": Subject(kind="hook", module=_echo),
    "hook.answers-with-a-result": _answering("no"),
    "hook.answers-soon": _hearing(_sleep),
    "hook.leaves-the-data-alone": _doing(_change),
    "hook.says-why-it-denies": _answering(HookResult.deny("")),
    "hook.says-what-it-asks": _answering(HookResult.ask("")),
    "hook.changes-what-the-event-has": _answering(
        HookResult.modify({"tool_inputs": {}})
    ),
    "hook.adds-texts-that-can-be-stored": _answering(HookResult.inject("x" * 20_000)),
    "hook.shows-messages-of-a-known-level": _answering(
        HookResult(user_message="Look!", user_message_level="loud")  # type: ignore[arg-type]
    ),
    "hook.decides-where-it-denies": _answering(
        HookResult.deny("not now"), "provider:request"
    ),
    "hook.survives-events-without-data": _doing(lambda data: data["session_id"]),
    "hook.survives-missing-keys": _need("tool_call_id"),
    "hook.survives-unknown-keys": _doing(
        lambda data: json.dumps(data, default=lambda part: part.text)
    ),
    "hook.survives-null-values": _doing(
        lambda data: str(data["model"]).index("model"), "provider:request"
    ),
    "hook.survives-any-arguments-and-results": _doing(_read_path, "tool:pre"),
    "hook.survives-huge-values": _doing(_slow_with_texts, "prompt:submit"),
    "hook.survives-deep-values": _doing(lambda data: _walk(data.get("tool_input"))),
    "hook.survives-broken-characters": _doing(
        lambda data: str(data.get("prompt")).encode()
    ),
    "hook.survives-events-it-does-not-know": _doing(_strict),
    "hook.answers-at-once-from-many-tasks": _crowded(),
    "hook.ends-when-it-is-cancelled": _hearing(_sleep),
    "hook.hears-calls-as-the-kernel-sends-them": _answering(
        HookResult.modify({"tool_input": {"x": object()}})
    ),
}
