"""Opening a session with what the application gives to its modules, and taking turns in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from amplifier.app.composition import Composition
from amplifier.app.mentions.session import SessionMentions
from amplifier.app.sources import FolderResolver
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.messages import MessageDict

__all__ = ["OpenSession", "open_session"]


@attrs.define(eq=False)
class OpenSession:
    """A session in which turns can be taken.

    Args:
        session: the session itself.
        composition: what it is made of.
        mentions: finds and loads what prompts mention.
    """

    session: AmplifierSession
    composition: Composition
    mentions: SessionMentions

    async def add_mentioned(self, prompt: str) -> None:
        """Put what a prompt mentions into the history, before the prompt; call it before the turn."""
        coordinator = self.session.coordinator
        for message in await self.mentions.messages(prompt, coordinator):
            await coordinator.context.add_message(message)


@asynccontextmanager
async def open_session(
    composition: Composition,
    *,
    session_id: str | None = None,
    first_tool: str | None = None,
    display: DisplaySystem | None = None,
    approval: ApprovalSystem | None = None,
) -> AsyncIterator[OpenSession]:
    """Open a session that is ready for a turn; it is closed at the end of the block.

    Modules that failed and are not needed are in the session's `failures`.

    Args:
        composition: what the session is made of. Its working directory is the capability `session.working_dir`,
            and what a relative path under `source` in the plan is relative to.
        session_id: default a fresh one.
        first_tool: a tool that must be mounted.
        display: shows messages to the person.
        approval: asks the person; without one, what needs approval is denied.

    Raises:
        ConfigError: the plan has problems, no provider of several could be mounted, or `first_tool` is unknown.
        ModuleError: a module that is needed failed.
    """
    places = composition.places
    session = AmplifierSession(
        composition.plan, session_id=session_id, approval_system=approval, display_system=display
    )
    session.coordinator.register_capability("session.working_dir", str(places.working_dir))
    session.coordinator.register_capability("session.dir", str(places.state))
    if _names_sources(session):
        await session.coordinator.mount("module-source-resolver", FolderResolver(places.working_dir))
    mentions = SessionMentions(places, composition.collections, composition.settings.read().mentions)
    mentions.register(session.coordinator)
    async with session:
        _require_provider(session)
        if first_tool is not None:
            _require_tool(session, first_tool)
        await _instruct(session, composition, mentions)
        yield OpenSession(session, composition, mentions)


async def _instruct(session: AmplifierSession, composition: Composition, mentions: SessionMentions) -> None:
    """Put the one system message at the head of the history; that of an earlier time makes way for it."""
    profile, text = composition.profile, composition.instruction
    if profile is None or text is None:
        return
    text = await mentions.instruction(text, profile.profile.path.parent, session.coordinator)
    context = session.coordinator.context
    stored = list(await context.get_messages())
    system: MessageDict = {"role": "system", "content": text}
    if not stored:
        await context.add_message(system)
    elif stored[0] != system:
        await context.set_messages([system, *(message for message in stored if message.get("role") != "system")])


def _names_sources(session: AmplifierSession) -> bool:
    """Whether the plan, or that of a child session, may say where a module comes from."""
    specs = [spec for modules in session.plan.modules.values() for spec in modules]
    return bool(session.plan.agents) or any(spec.source is not None for spec in specs)


def _require_provider(session: AmplifierSession) -> None:
    """Raise what kept every provider of the plan from being mounted."""
    named = {spec.module for spec in session.plan.modules["provider"]}
    failed = [failure for failure in session.failures if failure.module_id in named]
    if not failed or session.coordinator.get("providers"):
        return
    if len(failed) == 1:
        raise failed[0]
    problems = [Problem(failure.module_id, failure.reason) for failure in failed]
    raise ConfigError(problems, subject="plan's choice of providers")


def _require_tool(session: AmplifierSession, name: str) -> None:
    tools = session.coordinator.get("tools")
    names = sorted(tools) if isinstance(tools, dict) else []
    if name not in names:
        known = ", ".join(names) or "none"
        problem = f"no such tool is mounted; mounted: {known}{did_you_mean(name, names)}"
        raise ConfigError([Problem(f"tool {name!r}", problem)], subject="session")
