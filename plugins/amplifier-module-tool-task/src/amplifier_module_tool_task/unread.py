"""The agents of the background that the model has not read of: a private file beside the session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from logging import getLogger
from pathlib import Path
from typing import Final, TypeAlias

import attrs
from anyio import to_thread

from amplifier_kit.files.names import folder_name
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.open_data import as_object
from amplifier_kit.redaction import redactor_of
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["UnreadAgent", "UnreadAgents"]

_FILE: Final = "background.json"
_AGENTS: Final = "agents"

_log: Final = getLogger(__name__)


@attrs.frozen(kw_only=True)
class UnreadAgent:
    """An agent that the model has not read of.

    Args:
        name: the agent.
        text: what the model is to read; `None` where the agent has not ended.
    """

    name: str
    text: str | None = None


_Agents: TypeAlias = dict[str, UnreadAgent]


@attrs.frozen(eq=False)
class UnreadAgents:
    """The file of one session; `path` is `None` where the application stores nothing.

    What cannot be read or written is reported: the agents work nevertheless, and are lost with the process.
    """

    coordinator: Coordinator

    @property
    def path(self) -> Path | None:
        """The file: `sessions/ID/background.json` in the application's folder for sessions."""
        offered = self.coordinator.get_capability("session.dir")
        if not isinstance(offered, (str, Path)):
            return None
        folder = folder_name(self.coordinator.session_id)
        return Path(offered).absolute() / "sessions" / folder / _FILE

    async def load(self) -> _Agents:
        """Return the agents by their sessions."""
        path = self.path
        if path is None:
            return {}
        try:
            return _read(await to_thread.run_sync(PrivateFile(path).read))
        except OSError as error:
            _log.warning("The agents of the background are not known: %s", error)
            return {}

    async def note(self, session_id: str, agent: UnreadAgent) -> None:
        """Note an agent before it begins, and what came of it; without its secrets."""
        if agent.text is not None:
            redactor = redactor_of(self.coordinator)
            agent = attrs.evolve(agent, text=redactor.redact_text(agent.text))
        await self._change(lambda agents: {**agents, session_id: agent})

    async def remove(self, session_ids: Iterable[str]) -> None:
        """Note that the model has read of some."""
        read = frozenset(session_ids)
        await self._change(
            lambda agents: {
                session_id: agent
                for session_id, agent in agents.items()
                if session_id not in read
            }
        )

    async def _change(self, change: Callable[[_Agents], _Agents]) -> None:
        path = self.path
        if path is None:
            return

        def update(content: JSONValue) -> JSONValue:
            changed = change(_read(content)).items()
            agents = {
                session_id: {"name": agent.name, "text": agent.text}
                for session_id, agent in changed
            }
            return {"version": 1, _AGENTS: {**agents}}

        try:
            await to_thread.run_sync(PrivateFile(path).update, update)
        except OSError as error:
            _log.warning("An agent of the background is not stored: %s", error)


def _read(content: JSONValue) -> _Agents:
    agents = as_object(as_object(content).get(_AGENTS))
    return {
        str(session_id): UnreadAgent(
            name=str(as_object(agent).get("name")),
            text=text
            if isinstance(text := as_object(agent).get("text"), str)
            else None,
        )
        for session_id, agent in agents.items()
    }
