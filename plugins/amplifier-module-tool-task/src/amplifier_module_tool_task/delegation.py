"""Delegating: an agent begins in a new child session, or goes on in the one that it had."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from random import getrandbits
from typing import Final, cast

import attrs

from amplifier_module_tool_task.agents import Agents
from amplifier_module_tool_task.answers import Answers, read_result
from amplifier_module_tool_task.background import BackgroundAgents
from amplifier_module_tool_task.child_plan import Maker
from amplifier_module_tool_task.config import TaskConfig
from amplifier_module_tool_task.events import (
    TASK_AGENT_RESUMED,
    TASK_AGENT_SPAWNED,
    AgentResumed,
    AgentSpawned,
)
from amplifier_module_tool_task.progress import (
    DelegationEnd,
    DelegationProgress,
    announced,
)
from amplifier_module_tool_task.requests import Request
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.delegation import ChildResume, SessionSpawn
from amplifier_sdk.errors import ToolError
from amplifier_sdk.events import Event
from amplifier_sdk.progress import ToolContext
from amplifier_sdk.results import ToolResult

__all__ = ["Delegations"]

_MAX_KNOWN: Final = 200


@attrs.frozen(eq=False)
class _Delegation:
    """One turn of an agent: the event that begins it, who follows it, and what runs it."""

    event: Event[AgentSpawned] | Event[AgentResumed]
    begin: AgentSpawned | AgentResumed
    watch: DelegationProgress
    turn: Callable[[], Awaitable[object]]

    @property
    def session_id(self) -> str:
        return self.begin["sub_session_id"]


@attrs.define(eq=False)
class Delegations:
    """The agents' sessions of one session. It remembers those that it began, for better errors alone."""

    config: TaskConfig
    coordinator: Coordinator
    agents: Agents
    background: BackgroundAgents
    _known: dict[str, str] = attrs.field(factory=dict)

    @property
    def _maker(self) -> Maker:
        return Maker(self.config, self.coordinator, self.agents)

    @property
    def depth_left(self) -> int:
        """How many generations of agents there may be below this session."""
        own = self.coordinator.hooks.host.limits.delegation_depth
        limit = self.config.max_recursion_depth
        if limit is None:
            return own
        return min(own, limit)

    async def spawn(self, request: Request, context: ToolContext) -> ToolResult:
        """Run a new agent.

        Raises:
            ToolError: there is no such agent, or none may begin.
        """
        name = self._chosen(request)
        spawn = cast("SessionSpawn", self._capability("session.spawn"))
        # the id is chosen here, so that the event before the child names its session
        begin = AgentSpawned(
            agent=name,
            sub_session_id=f"{self.coordinator.session_id}-{_token(context)}_{_legible(name)}",
            parent_session_id=self.coordinator.session_id,
            inherit_context=request.depth,
            depth_left=self.depth_left - 1,
        )
        watch = self._watch(request, context, name)
        options = await self._maker.options(
            request, name, context.tool_name, begin["depth_left"]
        )
        options["sub_session_id"] = begin["sub_session_id"]
        if _takes(spawn, "continues"):
            options["continues"] = True
        # an application may have written the capability before it had observers
        if _takes(spawn, "observers"):
            options["observers"] = watch.observers
        return await self._take(
            _Delegation(TASK_AGENT_SPAWNED, begin, watch, partial(spawn, **options)),
            is_background=request.background,
        )

    async def resume(
        self, request: Request, session_id: str, context: ToolContext
    ) -> ToolResult:
        """Resume an agent. Whether it is one of this session's is for `session.resume` to say.

        Raises:
            ToolError: something is asked that only a new agent can be given, or no agent may work any more.
        """
        # before anything begins: what a new agent alone can be given is an error
        request.check_resumed()
        agent = self._known.get(session_id)
        # only a name that is known to be wrong: sessions of earlier runs are not known
        if agent is not None and request.agent not in (None, agent):
            raise ToolError(
                f"The session {session_id!r} is that of {agent!r}, not of {request.agent!r:.100}"
            )
        self._check_depth()
        resume = cast("ChildResume", self._capability("session.resume"))
        begin = AgentResumed(
            sub_session_id=session_id, parent_session_id=self.coordinator.session_id
        )
        if agent is not None:
            begin["agent"] = agent
        watch = self._watch(request, context, agent or session_id)
        turn = partial(
            resume, sub_session_id=session_id, instruction=request.instruction
        )
        given = {
            "observers": watch.observers,
            **self._maker.resume_options(self.depth_left - 1),
        }
        turn = partial(
            turn,
            **{name: value for name, value in given.items() if _takes(resume, name)},
        )
        return await self._take(
            _Delegation(TASK_AGENT_RESUMED, begin, watch, turn),
            is_background=request.background,
        )

    async def _take(
        self, delegation: _Delegation, *, is_background: bool
    ) -> ToolResult:
        """Run an agent's turn, or let it run in the background."""
        if not is_background:
            return await self._run(delegation, self.config.max_answer_chars)
        run = partial(self._run, delegation, self.background.max_answer_chars)
        return await self.background.begin(
            delegation.watch.agent, delegation.session_id, run
        )

    async def _run(self, delegation: _Delegation, limit: int) -> ToolResult:
        """Run an agent's turn between its two events, and write what came of it."""
        async with announced(
            self.coordinator.hooks, delegation.event, delegation.begin
        ) as ending:
            return await self._written(delegation, ending, limit)

    async def _written(
        self, delegation: _Delegation, ending: DelegationEnd, limit: int
    ) -> ToolResult:
        watch, session_id = delegation.watch, delegation.session_id
        answers = Answers(agent=watch.agent, session_id=session_id, limit=limit)
        try:
            result = read_result(await delegation.turn())
        except Exception as error:
            # foreign code: what a child's modules raise is the agent's failure
            ending.error = error
            # a session that never opened cannot be resumed, so its id would mislead
            if watch.began:
                self._remember(session_id, watch.agent)
            return answers.failed(
                error, can_resume=watch.began, known=list(self._known)
            )
        # set before the block is left, whose end reports it
        ending.result = result
        self._remember(result.session_id, watch.agent)
        return answers.of(result)

    def _watch(
        self, request: Request, context: ToolContext, agent: str
    ) -> DelegationProgress:
        """Return who follows an agent; the call of one in the background has ended when it works."""
        if request.background:
            self.background.check()
            context = ToolContext(tool_name=context.tool_name)
        return DelegationProgress(context, agent)

    def _chosen(self, request: Request) -> str:
        """Return the agent that shall begin."""
        if request.agent is None:
            raise ToolError(
                "Name the agent that shall do it, or the session_id of one that shall go on"
            )
        self._check_depth()
        return self.agents.find(request.agent)

    def _check_depth(self) -> None:
        """Refuse to hand work on where the limit of its depth is reached by now."""
        if self.depth_left <= 0:
            raise ToolError(
                "Work may be handed on no further: the limit of its depth is reached. Do it yourself"
            )

    def _capability(self, name: str) -> object:
        capability = self.coordinator.get_capability(name)
        if not callable(capability):
            raise ToolError(
                f"This session cannot delegate: it has no capability {name!r}. Do the work yourself"
            )
        return capability

    def _remember(self, session_id: str, agent: str) -> None:
        # taken out first, so that the one used last is also the last to be forgotten
        self._known.pop(session_id, None)
        self._known[session_id] = agent
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]


def _takes(function: Callable[..., object], name: str) -> bool:  # type: ignore[explicit-any]  # of any signature
    """Tell whether a capability takes an option; one that an application wrote may know fewer."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(
        one.kind is one.VAR_KEYWORD for one in parameters.values()
    )


def _token(context: ToolContext) -> str:
    """Return what distinguishes the agent of a call from others: a call that runs again means the same one."""
    key = context.idempotency_key
    if not key:
        return f"{getrandbits(64):016x}"
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _legible(name: str) -> str:
    """Return what of a name may stand in a session's id."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name[:40]).strip("-.") or "agent"
