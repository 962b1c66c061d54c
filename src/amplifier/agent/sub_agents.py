"""An agent as the tool of another one."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Final,
    Never,
    Protocol,
    Self,
    TypeVar,
    cast,
    runtime_checkable,
)

import attrs

from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.delegation import SessionSpawn
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier.agent.modules import ModuleTable
    from amplifier.kernel.sessions.answers import AnswerCheck
    from amplifier_sdk.media import Prompt

__all__ = ["SubAgent", "SubAgentTool"]

DepsT_contra = TypeVar("DepsT_contra", contravariant=True)

_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "description": "The task, with all that the agent has to know: it sees nothing of this conversation.",
        }
    },
    "required": ["prompt"],
    "additionalProperties": False,
}


@runtime_checkable
class SubAgent(Protocol[DepsT_contra]):
    """An agent, as another one knows it."""

    @property
    def name(self) -> str:
        """What the tool is called."""
        ...

    @property
    def description(self) -> str:
        """What it is for."""
        ...

    @property
    def turn_limits(self) -> LimitChanges:
        """What each of its runs may take."""
        ...

    def answer_check(self) -> AnswerCheck | None:
        """Return what checks its answers; `None` where any text will do."""
        ...

    def overlay(self, table: ModuleTable, check: AnswerCheck | None) -> JSONObject:
        """Return it as an agent of a plan, with its objects and its check in the table."""
        ...

    def run_sync(
        self,
        prompt: Prompt,
        *,
        deps: DepsT_contra | None = None,
        backend: str = "asyncio",
    ) -> object:
        """Answer one prompt where no event loop runs."""
        ...


@attrs.frozen(eq=False)
class SubAgentTool:
    """A tool that runs an agent in a child of the session.

    The child has the agent's own tools alone; what guards the session guards it as well, and what it spends counts
    for the session. `limits` hold for each of its turns, where they are stricter.
    """

    name: str
    description: str
    limits: LimitChanges
    check: AnswerCheck | None = None
    coordinator: Coordinator | None = None
    input_schema: JSONObject = _SCHEMA

    @classmethod
    def of(cls, agent: SubAgent[Never], check: AnswerCheck | None) -> Self:
        """Make the tool of an agent, whose answers the check was given."""
        says = agent.description or f"Gives a task to the agent {agent.name!r}."
        return cls(agent.name, says, agent.turn_limits, check)

    def with_coordinator(self, coordinator: Coordinator) -> Self:
        """Return the tool of one session."""
        return attrs.evolve(self, coordinator=coordinator)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Run the agent, and return its answer, if it is one that its check accepts."""
        assert self.coordinator is not None  # it is mounted with one
        spawn = cast("SessionSpawn", self.coordinator.get_capability("session.spawn"))
        child = await spawn(
            agent_name=self.name,
            instruction=str(input["prompt"]),
            tool_inheritance={"inherit_tools": ()},
            limits=self.limits,
        )
        if self.check is not None:
            problems = self.check.forget(child.session_id)
            if problems:
                return ToolResult.failure(
                    f"{self.name} gave no usable answer: {problems[-1]}"
                )
        return ToolResult(output=child.output)
