"""Tools from functions.

`@tool` leaves a function callable as before, with its types, and adds what a model needs: a name, a
description, a schema and `execute`. On a method it makes a tool of each instance.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import (
    TYPE_CHECKING,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    cast,
    overload,
)

import attrs
from typing_extensions import TypeVar

from amplifier_sdk._callables import AnyCallable, attributes_of
from amplifier_sdk._reader.schema import Signature, describe
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.bounds import seconds
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.effects import Effect, checked_effects, read_only_of
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    # only tools with an assessor need it
    from amplifier_sdk.assessments import Assessment, Assessor
    from amplifier_sdk.progress import ToolContext  # only tools that report need it
    from amplifier_sdk.run_context import RunContext

__all__ = ["FunctionTool", "tool", "tools_of"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
DepsT = TypeVar("DepsT")
# what a tool needs of its run: one that takes no `RunContext` fits every run
DepsT_contra = TypeVar("DepsT_contra", contravariant=True, default=object)
S = TypeVar("S")
A = TypeVar("A", bound="AnyCallable")

_PLAIN: Final = frozenset({str, int, float, bool, dict, list, type(None)})


@attrs.define(eq=False, slots=False)
class FunctionTool(Generic[P, R_co, DepsT_contra]):
    """A function that a model can call.

    `takes_context` asks the host to give `execute` the call's `ToolContext`.

    Calling it calls the function. `execute` runs it with a model's arguments: an `async` function on the
    event loop, any other in a worker thread. `effects` are what it does outside the conversation; `None` says nothing.
    One that was started when its process ended runs again if it is `idempotent`, or if it `asks_first` and waited
    for the answer. No other call runs beside an
    `exclusive` one. Of tools that are not `read_only` (false, where `None` says nothing)
    one runs at a time. A call may take `timeout` seconds; `None` means as long as the session's limits say.

    The runtime fills in the parameters that are annotated with `Coordinator` (the session's), with
    `ToolContext` (the call's, to report progress and output) and with `RunContext` (the run's, with the
    dependencies that the application gave); a model sees none of them.
    """

    function: Callable[P, R_co]
    name: str
    description: str
    exclusive: bool
    is_async: bool
    signature: Signature = attrs.field(repr=False)
    _coordinator: Coordinator | None = attrs.field(default=None, repr=False)
    read_only: bool | None = None
    timeout: float | None = None
    effects: tuple[Effect, ...] | None = None
    idempotent: bool = False
    asks_first: bool = False
    _assess: AnyCallable | None = attrs.field(default=None, repr=False)
    takes_context: bool = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.takes_context = bool(self.signature.contexts or self.signature.runs)
        if self.timeout is not None:
            try:
                seconds(self, attrs.fields(type(self)).timeout, self.timeout)
            except ValueError as error:
                raise TypeError(f"Tool {self.name!r}: {error}") from None
        if self.effects is None:
            return
        try:
            self.effects = checked_effects(self.effects)
        except ValueError as error:
            raise TypeError(f"Tool {self.name!r}: {error}") from None
        # approval goes by the effects, the order of calls by `read_only`
        if self.read_only and not {"write", "exec"}.isdisjoint(self.effects):
            raise TypeError(
                f"Tool {self.name!r} cannot be read-only and have the effects {', '.join(self.effects)}"
            )
        self.read_only = read_only_of(self)

    @property
    def input_schema(self) -> Mapping[str, JSONValue]:
        """The JSON Schema of the arguments, from the function's signature and docstring."""
        return self.signature.schema

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself, as calling the tool does: nothing is checked."""
        return self.function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> FunctionTool[P, R_co]: ...
    @overload
    def __get__(
        self: FunctionTool[Concatenate[S, Q], R_co],
        instance: S,
        owner: type | None = None,
    ) -> FunctionTool[Q, R_co]: ...
    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Return the tool of one instance, when the function is a method."""
        if instance is None:
            return self
        function: AnyCallable = self.function
        assess = self._assess
        bound = None
        if assess is not None:
            bound = assess.__get__(instance, owner)
        return attrs.evolve(
            self, function=function.__get__(instance, owner), assess=bound
        )

    def assessor(self, function: A) -> A:
        """Let a function say of each call what it would do, as `AssessesCalls` has it; a decorator.

        It takes what the tool's function takes, but for what the runtime fills in; of a tool that is a method it is a
        method too. A `ToolError` that it raises says why the call must fail.

        Args:
            function: an async function; what blocks it gives to a worker thread itself.
        """
        self._assess = function
        return function

    @property
    def assess_call(self) -> Assessor | None:
        """What assesses a call; `None` where the tool says nothing of single calls."""
        if self._assess is None:
            return None
        return self._assessed

    def with_coordinator(
        self, coordinator: Coordinator
    ) -> FunctionTool[P, R_co, DepsT_contra]:
        """Return the tool of one session, whose coordinator every parameter annotated with `Coordinator` gets."""
        if self.signature.coordinators or self.signature.runs:
            # a copy: one tool may be mounted in many sessions at once
            return attrs.evolve(self, coordinator=coordinator)
        return self

    async def execute(
        self, input: JSONObject, /, *, context: ToolContext | None = None
    ) -> ToolResult:
        """Run the function with a model's arguments, if they fit the schema.

        What does not fit becomes a failed result with the kernel's words, and the function is not called. A
        `ToolError` becomes a failed result; any other exception is raised, and the kernel makes one of
        it that names its type.

        Args:
            input: the arguments.
            context: the call's own, for a function that takes one; `None` makes one that nobody hears.
        """
        # before `bind`, whose readers know only values that the schema accepts
        problem = ArgumentSchema.of(self.input_schema, self.name).problem(input)
        if problem is not None:
            return ToolResult.failure(problem, type="invalid_arguments")
        try:
            value = await self._run(self.signature.bind(input), context)
        except ToolError as error:
            return ToolResult.failure(error.message, **error.details)
        # a function may make the whole result, for example one with images
        if isinstance(value, ToolResult):
            return value
        return ToolResult(output=_json(value))

    async def result(self, input: JSONObject, /) -> object:
        """Return what the function itself returns to arguments that fit the schema.

        Raises:
            Exception: whatever it raises.
        """
        return await self._run(self.signature.bind(input), None)

    async def _assessed(self, input: JSONObject, /) -> Assessment | None:
        assess = self._assess
        assert assess is not None  # `assess_call` offers it only then
        try:
            return cast(
                "Assessment | None",
                await cast("Awaitable[object]", assess(**self.signature.bind(input))),
            )
        except ToolError as error:
            from amplifier_sdk.assessments import Assessment  # few calls must fail

            return Assessment(problem=error.message)

    async def _run(
        self, arguments: dict[str, object], context: ToolContext | None
    ) -> object:
        function: AnyCallable = self.function
        signature = self.signature
        if self._coordinator is not None:
            arguments.update(dict.fromkeys(signature.coordinators, self._coordinator))
        if signature.contexts:
            arguments.update(
                dict.fromkeys(signature.contexts, context or _silent_context(self.name))
            )
        if signature.runs:
            run = self._run_context(context)
            arguments.update(dict.fromkeys(signature.runs, run))
        if self.is_async:
            return await function(**arguments)  # type: ignore[misc]  # what an async function returns
        # only blocking tools need threads
        from amplifier_sdk.threads import run_blocking

        return await run_blocking(partial(function, **arguments), name=self.name)

    def _run_context(self, call: ToolContext | None) -> RunContext[object]:
        """Make what the session's application gives to its tools."""
        from amplifier_sdk.run_context import RUN_CONTEXT, RunContextMaker

        coordinator = self._coordinator
        if coordinator is not None:
            make = coordinator.get_capability(RUN_CONTEXT)
            if make is not None:
                return cast("RunContextMaker", make)(coordinator, call=call)
        raise ToolError(
            f"{self.name} takes a RunContext, which a session of an amplifier.Agent gives; this session has none"
        )


class _Decorator(Protocol):
    """`tool` with options: what it makes of a function."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[RunContext[DepsT], Q], R], /
    ) -> FunctionTool[Concatenate[RunContext[DepsT], Q], R, DepsT]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    function: Callable[Concatenate[RunContext[DepsT], Q], R], /
) -> FunctionTool[Concatenate[RunContext[DepsT], Q], R, DepsT]: ...
@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    exclusive: bool = False,
    read_only: bool | None = None,
    timeout: float | None = None,
    effects: tuple[Effect, ...] | None = None,
    idempotent: bool = False,
    asks_first: bool = False,
) -> _Decorator: ...
def tool(
    function: AnyCallable | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    exclusive: bool = False,
    read_only: bool | None = None,
    timeout: float | None = None,
    effects: tuple[Effect, ...] | None = None,
    idempotent: bool = False,
    asks_first: bool = False,
) -> object:
    """Make a tool of a function or method.

    Args:
        function: sync or async; sync ones run in a worker thread when a model calls them.
        name: default the function's name.
        description: default the docstring without its sections.
        exclusive: no other call may run beside it.
        read_only: whether it changes nothing. Calls of tools that say that they change something run one after
            the other, in their order, beside the others; `None` says neither. Default what `read_only_of` makes of
            the effects.
        timeout: seconds that a call may take; default the session's `tool_timeout`.
        effects: what it does outside the conversation, all of it: `read`, `write`, `exec` (runs programs),
            `network`. Who approves calls goes by them; default nobody knows, and anything is possible.
        idempotent: whether to run a call a second time is as if it had run once, for example since the function passes
            `ToolContext.idempotency_key` on. Of a call that was started when its process ended nobody
            knows whether it had its effect: when its turn is continued, it runs again only if its tool says so.
        asks_first: whether it does nothing before its last `ToolContext.ask` has returned. While a person thinks its
            turn is left, and the call runs from its beginning again once they have answered.

    Raises:
        TypeError: a parameter's annotation is missing or has no JSON form, the function is a generator, nothing
            names it, its timeout is no number of seconds above 0, or its effects are none or contradict
            `read_only`; the message says what to write.
    """

    def decorate(function: AnyCallable) -> object:
        signature = describe(function)
        return FunctionTool(
            function=function,
            name=name or _name(function),
            description=description or signature.description,
            exclusive=exclusive,
            is_async=_is_async(function),
            signature=signature,
            read_only=read_only,
            timeout=timeout,
            effects=effects,
            idempotent=idempotent,
            asks_first=asks_first,
        )

    if function is None:
        return decorate
    return decorate(function)


def tools_of(instance: object) -> list[FunctionTool[..., object]]:  # type: ignore[explicit-any]  # of any signature
    """Return the tools among an instance's methods, in the order in which its class defines them."""
    return [
        getattr(instance, name)
        for name, value in attributes_of(instance)
        if isinstance(value, FunctionTool)
    ]


def _name(function: AnyCallable) -> str:
    name = getattr(function, "__name__", None)
    if isinstance(name, str) and name != "<lambda>":
        return name
    raise TypeError(
        f"{function!r:.200} has no name that a model could call; write @tool(name=…)"
    )


def _is_async(function: AnyCallable) -> bool:
    """Tell whether calling it gives an awaitable; what gives a generator has no one result."""
    forms = (function, getattr(function, "__call__", None))  # noqa: B004  # an object may have an async __call__
    if any(
        inspect.isgeneratorfunction(form) or inspect.isasyncgenfunction(form)
        for form in forms
    ):
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"{name} is a generator; return the result whole, and report what comes before it with a parameter"
            " 'context: ToolContext'"
        )
    return any(map(inspect.iscoroutinefunction, forms))


def _silent_context(name: str) -> ToolContext:
    from amplifier_sdk.progress import ToolContext  # only tools that report need it

    return ToolContext(tool_name=name)


def _json(value: object) -> JSONValue:
    """Return what a function returned as JSON data; values of other types take their JSON form."""
    if type(value) in _PLAIN:
        return value  # type: ignore[return-value]  # the serializer writes what is nested, whatever it is
    from amplifier_sdk.convert import to_json  # plain values need no converter

    return to_json(value)
