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

from amplifier.agent.prompts import ask_again
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.delegation import ChildResult, ChildResume, SessionSpawn
from amplifier_sdk.errors import OutputMisfitError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier.agent.modules import ModuleTable
    from amplifier_sdk.output_schema import OutputSchema

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

    @property
    def output_schema(self) -> OutputSchema[object] | None:
        """What its answers have to be; `None` is text."""
        ...

    @property
    def output_retries(self) -> int:
        """How often it may try again."""
        ...

    def overlay(self, table: ModuleTable) -> JSONObject:
        """Return it as an agent of a plan, with its objects in the table."""
        ...

    def run_sync(
        self, prompt: str, *, deps: DepsT_contra | None = None, backend: str = "asyncio"
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
    wanted: OutputSchema[object] | None = None
    retries: int = 0
    coordinator: Coordinator | None = None
    input_schema: JSONObject = _SCHEMA

    @classmethod
    def of(cls, agent: SubAgent[Never]) -> Self:
        """Make the tool of an agent."""
        return cls(
            agent.name,
            agent.description or f"Gives a task to the agent {agent.name!r}.",
            agent.turn_limits,
            agent.output_schema,
            agent.output_retries,
        )

    def with_coordinator(self, coordinator: Coordinator) -> Self:
        """Return the tool of one session."""
        return attrs.evolve(self, coordinator=coordinator)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Run the agent, and return its answer; one that is not of its output type it is asked for again."""
        coordinator = self.coordinator
        assert coordinator is not None  # it is mounted with one
        spawn = cast("SessionSpawn", coordinator.get_capability("session.spawn"))
        resume = cast("ChildResume", coordinator.get_capability("session.resume"))
        child = await spawn(
            agent_name=self.name,
            instruction=str(input["prompt"]),
            tool_inheritance={"inherit_tools": ()},
            limits=self.limits,
        )
        misfit = self._misfit(child)
        for _ in range(self.retries):
            if misfit is None:
                break
            child = await resume(
                sub_session_id=child.session_id,
                instruction=ask_again(misfit),
                limits=self.limits,
            )
            misfit = self._misfit(child)
        if misfit is not None:
            return ToolResult.failure(f"{self.name} gave no usable answer: {misfit}")
        return ToolResult(output=child.output)

    def _misfit(self, child: ChildResult) -> OutputMisfitError | None:
        """Return what is wrong with an answer; `None` for one that fits."""
        if self.wanted is None:
            return None
        try:
            self.wanted.read(child.output)
        except OutputMisfitError as misfit:
            return misfit
        return None
