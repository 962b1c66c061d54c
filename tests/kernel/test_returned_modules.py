"""What a module's `mount` may return, and what becomes of it."""

from __future__ import annotations

from amplifier_sdk import tool
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ModuleLoadError
from amplifier_sdk.hookspecs import Config
from tests.doubles import Worker, build_session


async def test_a_tool_without_a_description_is_a_tool() -> None:
    @tool
    async def bare(number: int) -> int:
        return number

    async with build_session("hello", tools=[bare]) as session:
        assert list(session.coordinator.tools) == ["bare"]


async def test_unknown_mount_information_is_ignored() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        await coordinator.mount("tools", Worker("work"))
        return {"name": "work", "version": "1.0"}

    async with build_session("hello", tools=[mount]) as session:
        assert list(session.coordinator.tools) == ["work"]
        assert session.failures == ()


async def test_information_alone_is_no_tool() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        return {"name": "work"}

    async with build_session("hello", tools=[mount]) as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleLoadError)
    assert "dict is no tool" in str(failure)


async def test_one_bad_part_of_a_list_is_refused_with_the_whole_list() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        return [Worker("good"), {"name": "bad"}]

    async with build_session("hello", tools=[mount]) as session:
        assert len(session.failures) == 1
        assert session.coordinator.tools == {}


async def test_an_instance_that_can_be_called_is_no_cleanup() -> None:
    called: list[str] = []

    class Callable:
        def __call__(self) -> None:
            called.append("called")

    async def mount(coordinator: Coordinator, config: Config) -> object:
        await coordinator.mount("tools", Worker("work"))
        return Callable()

    async with build_session("hello", tools=[mount]):
        pass

    assert called == []
