"""Sessions made of doubles and of whatever a test is about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isclass, isroutine
from typing import TypeAlias

from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.testing.contexts import MockContextManager
from amplifier.testing.orchestrators import MockOrchestrator
from amplifier_kit.scripted import ScriptedProvider, Step
from amplifier_sdk.contracts import ApprovalSystem, Coordinator, DisplaySystem
from amplifier_sdk.hookspecs import KINDS
from amplifier_sdk.journal import Journal
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of

__all__ = ["Mount", "create_test_session", "mounting"]

Mount: TypeAlias = Callable[[Coordinator, Mapping[str, JSONValue]], Awaitable[object]]
"""A module's `mount` function."""


def create_test_session(
    *steps: Step,
    provider: object = None,
    tools: Sequence[object] = (),
    hooks: Sequence[object] = (),
    orchestrator: object = None,
    context: object = None,
    configs: Mapping[str, Mapping[str, object]] | None = None,
    settings: Mapping[str, object] | None = None,
    journal: Journal | None = None,
    approval_system: ApprovalSystem | None = None,
    display_system: DisplaySystem | None = None,
    session_id: str = "test-session",
    parent_id: str | None = None,
    is_resumed: bool = False,
) -> AmplifierSession:
    """Make a real session of the modules given, and of doubles for the rest.

    A module is whatever an entry point may name (what the SDK's decorators made, a `mount` function, a package,
    an `EventRecorder`) or an instance to be mounted as it is. Modules are known as `orchestrator`, `context`,
    `provider`, `tool-0`, `tool-1`, …, `hook-0`, …. The session is not opened: use `async with`, or `execute` and
    `cleanup`.

    Args:
        steps: what the `ScriptedProvider` answers, when no other provider is given.
        provider: default a `ScriptedProvider`.
        tools: the tool modules.
        hooks: the hook modules.
        orchestrator: default a `MockOrchestrator`.
        context: default a `MockContextManager`.
        configs: the modules' configurations, by the names above.
        settings: more keys of the plan's `session` section, such as `limits`.
        journal: where the session's records go.
        approval_system: who is asked; nobody by default, and what needs approval is denied.
        display_system: where messages are shown.
        session_id: the session's id.
        parent_id: its parent's.
        is_resumed: whether it resumes a stored one.

    Raises:
        ConfigError: the settings do not fit.
    """
    tool_modules = {f"tool-{index}": tool for index, tool in enumerate(tools)}
    hook_modules = {f"hook-{index}": hook for index, hook in enumerate(hooks)}
    doubles = {
        "orchestrator": MockOrchestrator(),
        "context": MockContextManager(),
        "provider": ScriptedProvider(*steps),
    }
    given = {"orchestrator": orchestrator, "context": context, "provider": provider}
    modules = {
        **doubles,
        **{name: module for name, module in given.items() if module is not None},
        **tool_modules,
        **hook_modules,
    }
    entries = {
        name: {"module": name, "config": dict((configs or {}).get(name, {}))}
        for name in modules
    }
    plan = {
        "session": {
            "orchestrator": entries["orchestrator"],
            "context": entries["context"],
            **(settings or {}),
        },
        "providers": [entries["provider"]],
        "tools": [entries[name] for name in tool_modules],
        "hooks": [entries[name] for name in hook_modules],
    }
    session = AmplifierSession(
        plan,
        ModuleLoader(
            modules={name: _module(target) for name, target in modules.items()},
            # nothing of the machine is found: a test has the modules that it names
            search_paths=[],
            path=[],
        ),
        session_id,
        parent_id,
        approval_system,
        display_system,
        is_resumed,
    )
    if journal is not None:
        session.coordinator.register_capability("session.journal", journal)
    return session


def mounting(instance: object) -> Mount:
    """Make a `mount` function that returns an instance, or raises it when it is an exception."""

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        if isinstance(instance, BaseException):
            raise instance
        return instance

    return mount


def _module(target: object) -> object:
    """Return what the loader takes: a module as it is, an instance behind a `mount` function."""
    # an object with these is a plugin, also when it is an instance
    implements = any(
        hasattr(target, name) for name in ("mount", *(kind.spec.name for kind in KINDS))
    )
    is_module = (
        implements
        or isclass(target)
        or isroutine(target)
        or definition_of(target) is not None
    )
    if is_module:
        return target
    return mounting(target)
