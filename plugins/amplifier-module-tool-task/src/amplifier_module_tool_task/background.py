"""Agents in the background: they work beside the session's turns, and the model reads later what came of them.

Which of them the model has not read of is stored beside the session, so that it is informed also where the program
ended meanwhile. None of them works by itself again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, cast

import anyio
import attrs

from amplifier_module_tool_task.answers import Answers
from amplifier_module_tool_task.config import TaskConfig
from amplifier_module_tool_task.unread import UnreadAgent, UnreadAgents
from amplifier_sdk.capabilities import BACKGROUND
from amplifier_sdk.content import TextBlock
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.delegation import (
    BackgroundTask,
    ChildStore,
    ResumableChildStore,
    SessionBackground,
)
from amplifier_sdk.errors import ToolError, did_you_mean
from amplifier_sdk.events import (
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    USER_NOTIFICATION,
    UserNotification,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult, ToolResult

__all__ = ["BackgroundAgents"]

_NAME: Final = "tool-task"
_MAX_SHOWN: Final = 6_000
"""Characters of an answer: it has to fit what a hook may inject."""
_ROOM: Final = 9_000
_SAID: Final = "[The agent {agent!r} that worked in the background has ended.]"


@attrs.define(eq=False)
class _Agent:
    """One agent; `result` is there once it has ended, `task` where it began in this process."""

    name: str
    session_id: str
    task: BackgroundTask | None = None
    result: ToolResult | None = None


@attrs.define(eq=False)
class BackgroundAgents:
    """The agents that work in the background of one session, and those that its model has not read of."""

    config: TaskConfig
    coordinator: Coordinator
    unread: UnreadAgents
    _agents: dict[str, _Agent] = attrs.field(factory=dict)
    _reported: list[str] = attrs.field(factory=list)
    _listens: bool = False

    @property
    def is_offered(self) -> bool:
        """Whether an agent may work in the background: the session is held open between its turns."""
        return (
            self.config.max_background > 0
            and self.coordinator.get_capability(BACKGROUND) is not None
        )

    @property
    def max_answer_chars(self) -> int:
        """Characters of an answer that the model reads."""
        return min(self.config.max_answer_chars, _MAX_SHOWN)

    def check(self) -> None:
        """Refuse one more agent where none may begin.

        Raises:
            ToolError: the session has no background, or as many work as may.
        """
        if not self.is_offered:
            raise ToolError(
                "Nothing works in the background of this session; leave background out"
            )
        working = [agent for agent in self._agents.values() if agent.result is None]
        if len(working) >= self.config.max_background:
            names = ", ".join(agent.session_id for agent in working)
            raise ToolError(
                f"{len(working)} agents work in the background already, and that is the limit: wait for one"
                f" (action 'wait'), or leave background out. They are {names}"
            )

    async def begin(
        self, name: str, session_id: str, work: Callable[[], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Let an agent work, and say that it does.

        Args:
            name: the agent.
            session_id: its session.
            work: runs its turn; what it raises is reported by the session.
        """
        self._listen()
        agent = self._agents[session_id] = _Agent(name, session_id)
        await self.unread.note(session_id, UnreadAgent(name=name))

        async def run() -> None:
            try:
                agent.result = await work()
                await self._notify(agent)
            finally:
                await self._note_end(agent)

        background = cast(
            "SessionBackground", self.coordinator.get_capability(BACKGROUND)
        )
        agent.task = background(run, name=f"agent {name}")
        said = (
            f"The agent {name!r} works in the background. You are informed when it has ended. Do other work meanwhile,"
            " or end your turn; action 'wait' waits for it where nothing can be done without its answer, action 'stop'"
            " stops it."
        )
        output: JSONObject = {"status": "working", "session_id": session_id}
        text = f"{said}\n\n[session_id: {session_id}]"
        return ToolResult(output=output, content=[TextBlock(text=text)])

    async def wait(self, session_id: str) -> ToolResult:
        """Wait until an agent has ended, and return what came of it.

        Raises:
            ToolError: it does not work in the background.
        """
        agent = self._find(session_id)
        if agent.task is not None:
            await agent.task.wait()
        assert agent.result is not None
        await self._forget([session_id])
        return agent.result

    async def stop(self, session_id: str) -> ToolResult:
        """Stop an agent.

        Raises:
            ToolError: it does not work in the background.
        """
        agent = self._find(session_id)
        if agent.task is not None:
            agent.task.cancel()
        return await self.wait(session_id)

    async def recall(self) -> None:
        """Learn which agents the model has not read of, of a session that is resumed."""
        for session_id, unread in (await self.unread.load()).items():
            self._listen()
            if unread.text is None:
                result = await self._left(unread.name, session_id)
            else:
                result = ToolResult(content=[TextBlock(text=unread.text)])
            known = _Agent(unread.name, session_id, result=result)
            self._agents.setdefault(session_id, known)

    # -- what the model reads

    async def _report(self, *_: object) -> HookResult | None:
        """Say in the next request which agents have ended; what there is no room for, in the one after it."""
        texts: list[str] = []
        for agent in self._ended():
            text = f"{_SAID.format(agent=agent.name)}\n{_text(agent.result)}"
            if texts and len("".join(texts)) + len(text) > _ROOM:
                break
            texts.append(text)
            self._reported.append(agent.session_id)
        if not texts:
            return None
        return HookResult.inject("\n\n".join(texts), role="user")

    async def _confirm(self, *_: object) -> None:
        """Forget the agents that the model has read of: its answer is there."""
        reported, self._reported = self._reported, []
        if reported:
            await self._forget(reported)

    def _ended(self) -> Iterator[_Agent]:
        for agent in self._agents.values():
            if agent.result is not None and agent.session_id not in self._reported:
                yield agent

    async def _forget(self, session_ids: list[str]) -> None:
        for session_id in session_ids:
            self._agents.pop(session_id, None)
        await self.unread.remove(session_ids)

    def _listen(self) -> None:
        """Hear the requests of the session's model; most sessions have no agent in the background."""
        if self._listens:
            return
        self._listens = True
        hooks, cleanup = self.coordinator.hooks, self.coordinator.register_cleanup
        cleanup(hooks.register(PROVIDER_REQUEST, self._report, 0, _NAME, decides=False))
        cleanup(
            hooks.register(PROVIDER_RESPONSE, self._confirm, 0, _NAME, decides=False)
        )

    # -- one agent

    def _find(self, session_id: str) -> _Agent:
        agent = self._agents.get(session_id)
        if agent is None:
            known = list(self._agents)
            hint = (
                did_you_mean(session_id[:200], known)
                or f"; those that do: {', '.join(known) or 'none'}."
            )
            raise ToolError(
                f"No agent with the session {session_id[:200]!r} works in the background{hint}"
            )
        return agent

    async def _left(self, name: str, session_id: str) -> ToolResult:
        """Return what came of an agent in an earlier process."""
        answers = self._answers(name, session_id)
        store = self.coordinator.get_capability("session.children")
        if not isinstance(store, ChildStore):
            return answers.interrupted(can_resume=False)
        try:
            unfinished = None
            if isinstance(store, ResumableChildStore):
                unfinished = await store.unfinished(session_id)
            record = await store.load(session_id)
        except Exception:  # foreign code; whoever resumes the agent reads why
            return answers.interrupted(can_resume=True)
        if record is None or record.parent_id != self.coordinator.session_id:
            return answers.interrupted(can_resume=False)
        if unfinished is not None:
            return answers.interrupted(can_resume=True)
        return answers.of(record.last_result)

    async def _note_end(self, agent: _Agent) -> None:
        """Store what came of an agent, also of one that was stopped."""
        if agent.result is None:
            agent.result = self._answers(agent.name, agent.session_id).stopped()
        if agent.session_id not in self._agents:  # the model has read of it
            return
        ended = UnreadAgent(name=agent.name, text=_text(agent.result))
        with (
            # the session may be ending, and the agent with it
            anyio.CancelScope(shield=True),
            anyio.move_on_after(self.coordinator.hooks.host.limits.cleanup_timeout),
        ):
            await self.unread.note(agent.session_id, ended)

    def _answers(self, name: str, session_id: str) -> Answers:
        return Answers(agent=name, session_id=session_id, limit=self.max_answer_chars)

    async def _notify(self, agent: _Agent) -> None:
        """Inform the person, who may read about it long before the model does."""
        assert agent.result is not None
        how = "has ended" if agent.result.success else "has ended without an answer"
        payload = UserNotification(
            message=f"The agent {agent.name!r} {how}. The model reads of it in the next turn.",
            level="info",
            source=_NAME,
        )
        await self.coordinator.hooks.emit(USER_NOTIFICATION, payload)


def _text(result: ToolResult | None) -> str:
    """Return what a model reads of a result."""
    assert result is not None
    if not result.success or not result.content:
        return str(result.get_serialized_output())
    return "".join(
        block.text for block in result.content if isinstance(block, TextBlock)
    )
