"""`Agent`: a frozen description of who answers, with what, within which limits."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypedDict, cast, overload

import anyio
import attrs
from typing_extensions import TypeVar, Unpack

from amplifier.agent.instructions import (
    InstructionFunction,
    Instructions,
    TurnInstructions,
    split,
)
from amplifier.agent.models import Model, ModelChoice, choose_model, offline_choice
from amplifier.agent.modules import AgentHook, AgentTool, ModuleTable, as_tool
from amplifier.agent.plans import Plan, laid_over, provider_entry, read_plan, with_model
from amplifier.agent.problems import (
    argument_problems,
    plan_problems,
    sub_agent_problems,
)
from amplifier.agent.session import AgentSession, AgentStream
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.sessions.answers import AnswerCheck, OutputMode, OutputValidator
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import LimitChanges

if TYPE_CHECKING:
    from amplifier.agent.result import AgentResult
    from amplifier.serving.application import AgentServer, ServerOptions
    from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
    from amplifier_sdk.media import Prompt
    from amplifier_sdk.output_schema import OutputSchema

__all__ = ["Agent", "AsyncOutputFunction", "OutputFunction", "RunLimits"]

DepsT = TypeVar("DepsT")
DepsT_contra = TypeVar("DepsT_contra", default=None, contravariant=True)
OutputT_co = TypeVar("OutputT_co", default=str, covariant=True)
T = TypeVar("T")

_DEFAULT_LOOP: Final = "loop-basic"
_DEFAULT_CONTEXT: Final = "context-simple"
_PREFIX: Final = "agent"

AsyncOutputFunction: TypeAlias = Callable[..., Coroutine[object, object, T]]  # type: ignore[explicit-any]  # of any signature
OutputFunction: TypeAlias = Callable[..., T]  # type: ignore[explicit-any]  # likewise
"""A function whose arguments are the answer of a model, and whose result is the output."""

_Functions: TypeAlias = tuple[InstructionFunction[object], ...]


class RunLimits(LimitChanges, total=False):
    """The limits of each run; `cost`, in US dollars, is `cost_usd`."""

    cost: float | str | None


class _Options(TypedDict, Generic[DepsT], total=False):
    """The options of an agent that say nothing of its output's type."""

    name: str
    description: str
    instructions: Instructions[DepsT] | None
    tools: Sequence[AgentTool[DepsT]]
    hooks: Sequence[AgentHook]
    context: str | Mapping[str, JSONValue]
    loop: str | Mapping[str, JSONValue] | None
    plan: Plan | None
    limits: RunLimits | None
    deps: DepsT
    output_retries: int
    output_mode: OutputMode


class _Override(TypedDict, total=False):
    model: Model
    deps: object


_OVERRIDES: Final[ContextVar[Mapping[int, _Override]]] = ContextVar("overrides")
"""What replaces an agent's own, by the agent's identity."""


@attrs.frozen(init=False, eq=False)
class Agent(Generic[DepsT_contra, OutputT_co]):
    """An agent, which may run any number of times, at once and on both event loops.

    It holds nothing of its runs. What guards a session guards an agent's as well: without an `approval_system` what
    needs approval is denied.

    Args:
        model: `vendor:model`, the id of a provider module with or without its `provider-`, or a provider; default the
            plan's, or else the embedded model.
        name: what other agents call it by.
        description: what it is for, for agents that have it as a tool.
        instructions: its system prompt: texts, which stand before the conversation, and functions of the run, which are
            asked in each turn and stand before its prompt.
        tools: functions, `@tool` objects, toolsets, ids of modules, and other agents.
        hooks: handlers marked with `@on`, objects with such methods, and ids of modules.
        context: the id of the context module, or its entry of a plan.
        loop: the id of the orchestrator module, or its entry of a plan.
        plan: a partial mount plan, or the path of a file that has one, which is laid over what the rest comes to; also
            that of an agent which was exported. Where it has providers and `model` is none, its providers answer.
        limits: what each run may take, for example `{"cost": 0.10, "tool_calls": 20}`.
        deps: what its functions find as `ctx.deps`, unless a run brings its own; where only the runs do, say the type:
            `Agent[Bank, str](…)`.
        output: what an answer has to be: a class, a type with a JSON form, a pydantic model or a JSON Schema; or a
            function, which is called with the answer as its arguments and returns the output; default text.
        output_validators: functions of the run's context and an answer, which return it or another one in its place;
            one that raises `OutputRejectedError` says what the model has to do better.
        output_retries: how often the model may try again after an answer that does not fit, or is rejected.
        output_mode: `schema` asks the vendor for answers of the schema, `tool` has the model call a tool with the
            answer, `text` asks in words; `auto` is the first of these that the provider says it has. Where a vendor
            refuses one, the next is tried, and the result's `degradations` say so.

    Raises:
        ConfigError: an argument is none of what it may be; names it.
        TypeError: the output type, or a tool's parameter, has no JSON form; names the field.
    """

    model: Model | None
    name: str
    description: str
    instructions: Instructions[DepsT_contra] | None = attrs.field(repr=False)
    tools: tuple[AgentTool[DepsT_contra], ...] = attrs.field(repr=False)
    hooks: tuple[AgentHook, ...] = attrs.field(repr=False)
    context: str | Mapping[str, JSONValue]
    loop: str | Mapping[str, JSONValue] | None
    overlay_plan: Mapping[str, JSONValue] = attrs.field(repr=False)
    limits: RunLimits
    deps: DepsT_contra = attrs.field(repr=False)
    output_schema: OutputSchema[object] | None
    output_validators: tuple[OutputValidator[DepsT_contra, OutputT_co], ...] = (
        attrs.field(repr=False)
    )
    output_retries: int
    output_mode: OutputMode
    _is_described: bool = attrs.field(default=False, init=False, repr=False)

    @overload
    def __init__(
        self: Agent[DepsT_contra, str],
        model: Model | None = None,
        *,
        output: None = ...,
        output_validators: Sequence[OutputValidator[DepsT_contra, str]] = ...,
        **options: Unpack[_Options[DepsT_contra]],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[DepsT_contra, T],
        model: Model | None = None,
        *,
        output: type[T],
        output_validators: Sequence[OutputValidator[DepsT_contra, T]] = ...,
        **options: Unpack[_Options[DepsT_contra]],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[DepsT_contra, T],
        model: Model | None = None,
        *,
        output: AsyncOutputFunction[T],
        output_validators: Sequence[OutputValidator[DepsT_contra, T]] = ...,
        **options: Unpack[_Options[DepsT_contra]],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[DepsT_contra, T],
        model: Model | None = None,
        *,
        output: OutputFunction[T],
        output_validators: Sequence[OutputValidator[DepsT_contra, T]] = ...,
        **options: Unpack[_Options[DepsT_contra]],
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: Model | None = None,
        *,
        output: object,
        output_validators: Sequence[OutputValidator[DepsT_contra, OutputT_co]] = ...,
        **options: Unpack[_Options[DepsT_contra]],
    ) -> None: ...
    def __init__(
        self,
        model: Model | None = None,
        *,
        name: str = "agent",
        description: str = "",
        instructions: Instructions[DepsT_contra] | None = None,
        tools: Sequence[AgentTool[DepsT_contra]] = (),
        hooks: Sequence[AgentHook] = (),
        context: str | Mapping[str, JSONValue] = _DEFAULT_CONTEXT,
        loop: str | Mapping[str, JSONValue] | None = None,
        plan: Plan | None = None,
        limits: RunLimits | None = None,
        deps: object = None,
        output: object = None,
        output_validators: Sequence[object] = (),
        output_retries: int = 2,
        output_mode: OutputMode = "auto",
    ) -> None:
        problems = argument_problems(
            model=model,
            name=name,
            instructions=instructions,
            tools=tools,
            hooks=hooks,
            limits=limits,
            plan=plan,
            output_validators=output_validators,
            output_retries=output_retries,
            output_mode=output_mode,
        )
        _refuse(*problems)
        self.__attrs_init__(
            model,
            name,
            description,
            instructions,
            # once, and not in each session: reading a signature takes longer than all else that an agent adds
            tuple(as_tool(each) for each in tools),
            tuple(hooks),
            context,
            loop or _DEFAULT_LOOP,
            read_plan(plan),
            limits or {},
            cast("DepsT_contra", deps),
            None if output is None else _schema_of(output),
            tuple(
                cast(
                    "Sequence[OutputValidator[DepsT_contra, OutputT_co]]",
                    output_validators,
                )
            ),
            output_retries,
            output_mode,
        )
        # what cannot be mounted is refused here, and not in the first run; what is installed is known then
        table, compiled = self._compiled(offline_choice(model), self.answer_check())
        _refuse(*plan_problems(compiled, table))
        object.__setattr__(self, "_is_described", False)

    @property
    def turn_limits(self) -> LimitChanges:
        """The limits of each run, by the names of a plan."""
        limits: dict[str, object] = {**self.limits}
        if "cost" in limits:
            limits["cost_usd"] = limits.pop("cost")
        return cast("LimitChanges", limits)

    def output_validator(
        self: Agent[DepsT, T], function: OutputValidator[DepsT, T]
    ) -> OutputValidator[DepsT, T]:
        """Add a function to `output_validators`, behind those that are there; a decorator.

        ```python
        @agent.output_validator
        def adds_up(ctx: RunContext[Shop], invoice: Invoice) -> Invoice: ...
        ```

        It is a part of the description, which ends when the agent first runs, is exported or becomes another's tool.

        Raises:
            RuntimeError: the description has ended.
        """
        if self._is_described:
            name = getattr(function, "__name__", "FUNCTION")
            raise RuntimeError(
                f"Agent {self.name!r} has been used, and would answer otherwise from now on; write"
                f" Agent(..., output_validators=[{name}]), or decorate before its first use"
            )
        # as attrs collects the validators of a field before the class is made
        object.__setattr__(
            self, "output_validators", (*self.output_validators, function)
        )
        return function

    # -- running

    async def run(
        self,
        prompt: Prompt,
        *,
        deps: DepsT_contra | None = None,
        approval_system: ApprovalSystem | None = None,
    ) -> AgentResult[OutputT_co]:
        """Answer one prompt in a session of its own, which is closed afterwards.

        Args:
            prompt: what is asked: a text, or texts and media, as in `["Describe", Image.file(path)]`.
            deps: what the agent's functions find as `ctx.deps`; default the agent's own.
            approval_system: asks the person; without one, what needs approval is denied.

        Raises:
            OutputError: no answer was of the output type.
            ConfigError: the plan has problems; names them.
            BudgetExceededError: nothing is left of a limit.
            Exception: whatever a provider or the loop raised.
        """
        async with self.session(deps=deps, approval_system=approval_system) as session:
            return await session.run(prompt)

    def run_sync(
        self,
        prompt: Prompt,
        *,
        deps: DepsT_contra | None = None,
        backend: str = "asyncio",
    ) -> AgentResult[OutputT_co]:
        """Do what `run` does where no event loop runs, as in scripts and notebooks.

        Args:
            prompt: what is asked.
            deps: as in `run`.
            backend: `asyncio` or `trio`.

        Raises:
            RuntimeError: an event loop runs in this thread; the message has the line to write instead.
            Exception: as `run`.
        """
        if _in_event_loop():
            raise RuntimeError(
                "An event loop runs in this thread; write `result = await agent.run(prompt)` instead of run_sync"
            )
        return anyio.run(partial(self.run, prompt, deps=deps), backend=backend)

    @asynccontextmanager
    async def stream(
        self,
        prompt: Prompt,
        *,
        deps: DepsT_contra | None = None,
        approval_system: ApprovalSystem | None = None,
    ) -> AsyncIterator[AgentStream[OutputT_co]]:
        """Answer one prompt and read its events as they happen; leaving the block cancels a run that goes on.

        The stream's `result` is there when its events have ended. Arguments and errors are those of `run`.
        """
        async with (
            self.session(deps=deps, approval_system=approval_system) as session,
            session.stream(prompt) as events,
        ):
            yield events

    def session(
        self,
        *,
        deps: DepsT_contra | None = None,
        approval_system: ApprovalSystem | None = None,
        display_system: DisplaySystem | None = None,
        session_id: str | None = None,
    ) -> AgentSession[DepsT_contra, OutputT_co]:
        """Make a session for many turns, which `async with` opens and closes.

        Until it is opened, an application may register capabilities and handlers on its `session.coordinator`.

        Args:
            deps: as in `run`.
            approval_system: as in `run`.
            display_system: shows messages to the person.
            session_id: default a fresh UUID.

        Raises:
            ConfigError: as in `run`.
        """
        override = _OVERRIDES.get({}).get(id(self), {})
        check = self.answer_check()
        table, plan = self._compiled(self._choice(), check)
        if "model" in override:
            plan = with_model(plan, choose_model(override["model"]), table)
        loader = ModuleLoader(modules=table.objects)
        _refuse(*sub_agent_problems(plan, loader))
        given = override.get("deps", deps)
        return AgentSession.of(
            self,
            plan,
            loader,
            cast("DepsT_contra", self.deps if given is None else given),
            check,
            approval_system=approval_system,
            display_system=display_system,
            session_id=session_id,
        )

    def asgi(self, **options: Unpack[ServerOptions]) -> AgentServer:
        """Make an ASGI application in which the agent answers; the options are those of `AgentServer`.

        It needs the extra `amplifier[server]`.

        Raises:
            ConfigError: as `AgentServer`.
        """
        # a web framework, which few programs need
        from amplifier.serving.application import AgentServer

        return AgentServer(self, **options)

    @contextmanager
    def override(
        self, *, model: Model | None = None, deps: DepsT_contra | None = None
    ) -> Iterator[None]:
        """Let the sessions that are opened in the block, also by code that it calls, have another model or deps.

        For tests. Of agents that are tools of this one, each keeps its own model.
        """
        changes: _Override = {}
        if model is not None:
            changes["model"] = model
        if deps is not None:
            changes["deps"] = deps
        token = _OVERRIDES.set({**_OVERRIDES.get({}), id(self): changes})
        try:
            yield
        finally:
            _OVERRIDES.reset(token)

    # -- the plan

    def plan(self) -> JSONObject:
        """Return the mount plan that the agent's sessions have.

        `Agent(plan=…)` makes an agent of it again. Modules whose ids begin with `agent-` are objects of this process:
        who has them gives them again, under the arguments that they were given under here.

        Raises:
            ConfigError: no installed provider is meant by `model`.
        """
        return self._compiled(self._choice(), self.answer_check())[1]

    def own_modules(self) -> tuple[str, ...]:
        """Return the ids of the modules in its plan that are objects of this process.

        Raises:
            ConfigError: as `plan`.
        """
        table, _ = self._compiled(self._choice(), self.answer_check())
        return tuple(table.objects)

    def answer_check(self) -> AnswerCheck | None:
        """Return what checks the answers of one session; `None` where any text will do. The description ends here."""
        object.__setattr__(self, "_is_described", True)
        if self.output_schema is None and not self.output_validators:
            return None
        validators = cast(
            "tuple[OutputValidator[object, object], ...]", self.output_validators
        )
        return AnswerCheck(
            self.output_schema, validators, self.output_retries, self.output_mode
        )

    def overlay(self, table: ModuleTable, check: AnswerCheck | None) -> JSONObject:
        """Return the agent as one of another agent's plan, with its objects in that one's table."""
        text, _ = split(self.instructions)
        plan: JSONObject = {"tools": table.tools(self.tools)}
        hooks = self._hooks(table, check)
        if hooks:
            plan["hooks"] = hooks
        if text is not None:
            plan["system"] = {"instruction": text}
        if self.description:
            plan["description"] = self.description
        if self.model is not None:
            choice = choose_model(self.model)
            plan["providers"] = [provider_entry(choice, table)]
            # also where it is `None`: the model of the agent above is another provider's
            plan["orchestrator"] = {"config": {"model": choice.model}}
        return plan

    def _choice(self) -> ModelChoice | None:
        """Find the agent's provider; `None` where its plan alone has one."""
        if self.model is None and self.overlay_plan.get("providers"):
            return None
        return choose_model(self.model)

    def _hooks(self, table: ModuleTable, check: AnswerCheck | None) -> list[JSONValue]:
        """Return the plan's entries of the application's hooks, and of the agent's own."""
        hooks = table.hooks(self.hooks)
        _, functions = split(self.instructions)
        if functions:
            turn = TurnInstructions(cast("_Functions", functions))
            hooks.append({"module": table.add("hook", "instructions", turn)})
        if check is not None:
            hooks.append({"module": table.add("hook", "output", check)})
        return hooks

    def _compiled(
        self, choice: ModelChoice | None, check: AnswerCheck | None
    ) -> tuple[ModuleTable, JSONObject]:
        """Return the plan, and the objects that its own modules are."""
        table = ModuleTable(_PREFIX)
        session: JSONObject = {
            "orchestrator": cast("JSONValue", self.loop),
            "context": cast("JSONValue", self.context),
        }
        limits = self.turn_limits
        if limits:
            session["limits"] = cast("JSONObject", dict(limits))
        plan: JSONObject = {
            "session": session,
            "tools": table.tools(self.tools),
            "hooks": self._hooks(table, check),
        }
        if choice is not None:
            plan["providers"] = [provider_entry(choice, table)]
            if choice.model is not None:
                plan["orchestrator"] = {"config": {"model": choice.model}}
        if table.agents:
            plan["agents"] = cast("JSONObject", table.agents)
        text, _ = split(self.instructions)
        if text is not None:
            plan["system"] = {"instruction": text}
        if self.overlay_plan:
            plan = laid_over(plan, self.overlay_plan)
        return table, plan


def _schema_of(output: object) -> OutputSchema[object]:
    # an agent that answers with text needs none
    from amplifier_sdk.output_schema import OutputSchema

    return OutputSchema.of(output)


def _refuse(*problems: Problem) -> None:
    if problems:
        raise ConfigError(problems, subject="agent")


def _in_event_loop() -> bool:
    try:
        anyio.lowlevel.current_token()
    except RuntimeError:  # anyio's `NoEventLoopError` is one
        return False
    return True
