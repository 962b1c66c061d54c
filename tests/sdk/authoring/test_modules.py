"""Classes as modules: what they are built from, what is mounted, how they are released."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import attrs
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_sdk import (
    BaseProvider,
    ChatRequest,
    ChatResponse,
    ConfigError,
    Coordinator,
    Delta,
    JSONValue,
    Loop,
    ProviderInfo,
    Turn,
    context,
    hook,
    module,
    on,
    orchestrator,
    provider,
    tool,
    toolset,
)
from amplifier_sdk.errors import OwnerTaskError
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.modules import ModuleDefinition, definition_of
from tests.sdk.authoring.doubles import PlainContext

if TYPE_CHECKING:
    from decimal import Decimal as Rate


@attrs.frozen(kw_only=True)
class EchoConfig:
    prefix: str = ""
    times: int = 1


@dataclasses.dataclass(frozen=True)
class ClockConfig:
    zone: str = "UTC"


@provider
class Echo(BaseProvider):
    """Built from a typed configuration."""

    name = "echo"

    def __init__(self, config: EchoConfig) -> None:
        self.config = config

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="echo", display_name="Echo")

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield ChatResponse()


class LouderEcho(Echo):
    """Inherits from a module."""


@orchestrator
class Silent(Loop):
    """Takes nothing at all."""

    async def run(self, turn: Turn) -> str:
        return ""


@context
class Memory(PlainContext):
    """Takes the configuration as it is, and the coordinator."""

    def __init__(
        self, config: Mapping[str, JSONValue], coordinator: Coordinator
    ) -> None:
        super().__init__()
        self.config = config
        self.coordinator = coordinator


@toolset
class Clock:
    """Built from a dataclass, or not at all; closes."""

    def __init__(self, config: ClockConfig | None = None) -> None:
        self.config = config
        self.closed = False

    @tool
    def now(self) -> str:
        """Tell the time."""
        return "noon"

    async def aclose(self) -> None:
        self.closed = True


@toolset
class Single:
    """A tool written by hand."""

    name = "single"
    description = "One tool"

    async def execute(self, input: dict[str, JSONValue], /) -> None:
        return None


@hook
@attrs.define(eq=False)
class Guard:
    """An attrs class is a module as well; not all its types are known at run time."""

    config: EchoConfig
    rate: Rate | None = None
    seen: list[str] = attrs.field(factory=list)

    @on(TOOL_PRE)
    def see(self, event: str, data: ToolPre) -> None:
        self.seen.append(data["tool_name"])


@toolset
class Connection:
    """An async context manager with a cancel scope of its own."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._scope = anyio.CancelScope()

    async def __aenter__(self) -> Self:
        self._scope.__enter__()
        self.events.append("opened")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self.events.append("closed")
        return self._scope.__exit__(kind, error, traceback)

    @tool
    def ping(self) -> str:
        """Answer."""
        return "pong"


def _definition(target: object) -> ModuleDefinition:
    definition = definition_of(target)
    assert definition is not None
    return definition


@pytest.mark.parametrize(
    ("cls", "kind"),
    [
        (Echo, "provider"),
        (Silent, "orchestrator"),
        (Memory, "context"),
        (Clock, "tool"),
        (Guard, "hook"),
    ],
)
def test_a_decorated_class_declares_its_type(cls: type, kind: str) -> None:
    assert _definition(cls).kind == kind


def test_a_class_may_be_of_an_applications_own_type() -> None:
    assert _definition(module("judge")(type("Judge", (), {}))).kind == "judge"


def test_a_decorated_class_stays_a_plain_class() -> None:
    assert Echo(EchoConfig(prefix="> ")).config.prefix == "> "


async def test_a_typed_configuration_is_built_from_the_plans_mapping() -> None:
    echo = await _definition(Echo).mount(ModuleCoordinator(), {"prefix": "> "})

    assert isinstance(echo, Echo)
    assert echo.config == EchoConfig(prefix="> ")


@pytest.mark.parametrize("config", [{}, {"zone": "CET"}])
async def test_dataclass_and_optional_one_are_typed_configurations(
    config: Mapping[str, JSONValue],
) -> None:
    clock = _definition(Clock).build(ModuleCoordinator(), config)

    assert isinstance(clock, Clock)
    assert clock.config == (ClockConfig(zone="CET") if config else ClockConfig())


def test_an_attrs_class_gets_its_configuration() -> None:
    guard = _definition(Guard).build(ModuleCoordinator(), {"times": 2})

    assert isinstance(guard, Guard)
    assert guard.config == EchoConfig(times=2)


async def test_a_mapping_is_handed_on_as_it_is_with_the_coordinator() -> None:
    coordinator = ModuleCoordinator()

    memory = await _definition(Memory).mount(coordinator, {"anything": [1]})

    assert isinstance(memory, Memory)
    assert memory.config == {"anything": [1]}
    assert memory.coordinator is coordinator


def test_an_untyped_parameter_gets_the_mapping() -> None:
    def build(config):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # what authors without types write
        return config

    assert ModuleDefinition(kind="tool", factory=build).build(
        ModuleCoordinator(), {"a": 1}
    ) == {"a": 1}


def test_unknown_keys_are_errors_that_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"prefx: .*'prefix'") as caught:
        _definition(Echo).build(ModuleCoordinator(), {"prefx": "> ", "times": "2"})

    assert {problem.path for problem in caught.value.problems} == {"prefx", "times"}
    assert "Echo" in str(caught.value)


@pytest.mark.parametrize("target", [Silent, Clock().now, Single])
async def test_module_without_config_parameter_takes_no_configuration(
    target: object,
) -> None:
    with pytest.raises(
        ConfigError, match=r"zone: unknown key; this module takes no configuration"
    ):
        await _definition(target).mount(ModuleCoordinator(), {"zone": "CET"})


def test_config_class_no_global_name_is_error_with_remedy() -> None:
    @attrs.frozen
    class Local:
        size: int = 1

    @toolset
    class Box:
        def __init__(self, config: Local) -> None:
            self.config = config

    with pytest.raises(
        TypeError,
        match=r"Box: parameter 'config' has the annotation 'Local'.*top of the module",
    ):
        _definition(Box).build(ModuleCoordinator(), {})


def test_a_subclass_of_a_module_is_built_itself() -> None:
    assert isinstance(
        _definition(LouderEcho).build(ModuleCoordinator(), {}), LouderEcho
    )


async def test_an_instance_is_mounted_as_it_is() -> None:
    echo = Echo(EchoConfig(times=3))

    assert await _definition(echo).mount(ModuleCoordinator(), {}) is echo


async def test_a_set_of_tools_is_mounted_as_its_tools() -> None:
    mounted = await _definition(Clock).mount(ModuleCoordinator(), {})

    assert isinstance(mounted, list)
    assert [tool.name for tool in mounted] == ["now"]


async def test_a_tool_written_by_hand_is_mounted_as_it_is() -> None:
    assert isinstance(await _definition(Single).mount(ModuleCoordinator(), {}), Single)


async def test_a_hook_class_is_heard_until_the_session_ends() -> None:
    coordinator = ModuleCoordinator()

    assert await _definition(Guard).mount(coordinator, {}) is None
    assert coordinator.hooks.list_handlers() == {"tool:pre": ["Guard.see"]}

    await coordinator.cleanup()
    assert not coordinator.hooks.has_handlers(TOOL_PRE)


async def test_a_marked_function_is_a_hook_module() -> None:
    @on(TOOL_PRE)
    def watch(event: str, data: ToolPre) -> None:
        """Look on."""

    coordinator = ModuleCoordinator()
    assert _definition(watch).kind == "hook"

    await _definition(watch).mount(coordinator, {})
    assert coordinator.hooks.has_handlers(TOOL_PRE)


async def test_aclose_is_called_when_the_session_ends() -> None:
    coordinator, clock = ModuleCoordinator(), Clock()
    await _definition(clock).mount(coordinator, {})
    assert not clock.closed

    await coordinator.cleanup()
    assert clock.closed


async def test_a_context_manager_is_open_while_the_session_is() -> None:
    coordinator, connection = ModuleCoordinator(), Connection()
    async with anyio.create_task_group() as group:
        coordinator.owners.task_group = group

        await _definition(connection).mount(coordinator, {})
        assert connection.events == ["opened"]

        await coordinator.cleanup()
        assert connection.events == ["opened", "closed"]


async def test_a_context_manager_needs_a_session_that_owns_tasks() -> None:
    with pytest.raises(
        OwnerTaskError, match=r"Connection needs a task of its own.*async with"
    ):
        await _definition(Connection).mount(ModuleCoordinator(), {})


@pytest.mark.parametrize("target", [object(), PlainContext, PlainContext(), print])
def test_what_no_decorator_made_has_no_definition(target: object) -> None:
    assert definition_of(target) is None
