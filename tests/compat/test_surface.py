"""All that modules, tests and applications of the original name is there, with what they ask of it."""

from __future__ import annotations

from importlib import import_module
from unittest.mock import MagicMock

import amplifier_core
import pytest
from amplifier_core import AmplifierSession, HookRegistry, ModuleCoordinator
from amplifier_core.cancellation import CancellationToken
from amplifier_core.loader import ModuleLoader
from amplifier_core.module_sources import (
    FileSystemModuleSource,
    ModuleLoadError,
    ModuleNotFoundError,
)
from amplifier_core.validation import MountPlanValidator

from amplifier_sdk.errors import ModuleError
from tests.compat.surface import FIELDS, INSTANCES, KEYWORDS, NAMES, SPECIFIED

PLAN = {"session": {"orchestrator": "o", "context": "c"}}


@pytest.mark.parametrize("path", NAMES)
def test_the_names_of_a_module_are_there(path: str) -> None:
    module = import_module(path)

    assert [name for name in NAMES[path].split() if not hasattr(module, name)] == []


def test_a_name_is_one_object_by_whichever_path() -> None:
    homes: dict[str, object] = {}
    for path, names in NAMES.items():
        module = import_module(path)
        for name in names.split():
            assert homes.setdefault(name, getattr(module, name)) is getattr(
                module, name
            )


def test_submodules_are_attributes_of_the_package() -> None:
    assert amplifier_core.events.TOOL_PRE == "tool:pre"
    assert amplifier_core.utils.retry.RetryConfig is amplifier_core.RetryConfig


@pytest.mark.parametrize("kind", INSTANCES)
async def test_the_members_of_instances_are_there(kind: str) -> None:
    session = AmplifierSession(PLAN)
    found = {
        "session": session,
        "coordinator": session.coordinator,
        "hooks": session.coordinator.hooks,
        "token": session.coordinator.cancellation,
        "loader": session.loader,
    }[kind]

    assert [name for name in INSTANCES[kind].split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("name", SPECIFIED)
def test_doubles_that_a_class_specifies_have_its_members(name: str) -> None:
    double = MagicMock(spec=getattr(amplifier_core, name))

    assert [each for each in SPECIFIED[name].split() if not hasattr(double, each)] == []


def test_an_attribute_that_an_instance_has_not_set_is_missing() -> None:
    bare = ModuleCoordinator.__new__(ModuleCoordinator)

    assert not hasattr(bare, "config")


@pytest.mark.parametrize("name", FIELDS)
def test_the_fields_of_a_model(name: str) -> None:
    model = getattr(amplifier_core, name)

    assert set(model.model_fields) == set(FIELDS[name].split())


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_constructor_takes_the_keywords_that_are_in_use(name: str) -> None:
    given = KEYWORDS[name]
    made = (
        getattr(amplifier_core, name)("m", **given)
        if name.endswith("Error")
        else getattr(amplifier_core, name)(**given)
    )

    known = {key: value for key, value in given.items() if hasattr(made, key)}
    assert known.keys() >= given.keys() - {"metadata", "jitter"}
    assert all(
        getattr(made, key) == value for key, value in known.items() if key != "jitter"
    )


def test_an_error_shows_what_is_set() -> None:
    error = amplifier_core.RateLimitError("slow", status_code=429, retry_after=2.0)

    assert repr(error) == (
        "RateLimitError('slow', status_code=429, retryable=True, retry_after=2.0)"
    )
    assert repr(amplifier_core.LLMError("x", delay_multiplier=2.0)) == (
        "LLMError('x', delay_multiplier=2.0)"
    )


@pytest.mark.parametrize("error", [ModuleNotFoundError, ModuleLoadError])
def test_the_errors_of_sources_take_a_text_alone(error: type[ModuleError]) -> None:
    raised = error("nothing is there")

    assert str(raised) == "nothing is there"
    assert str(raised.amended(module_id="tool-x")) == (
        "Module 'tool-x': nothing is there"
    )


def test_the_folders_of_a_configuration() -> None:
    source = FileSystemModuleSource(["/a", "/b"])

    assert source.get_module_paths() == ["/a", "/b"]
    assert source.get_mention_mappings() == {}
    assert FileSystemModuleSource().get_module_paths() == []


@pytest.mark.parametrize(
    ("plan", "failed"),
    [
        (None, ["root_type"]),
        ({}, ["session_present"]),
        ({"session": 1}, ["session_type"]),
        ({"session": {}}, ["session_context_present", "session_orchestrator_present"]),
        (PLAN, []),
        ({**PLAN, "orchestrator": {"config": {}}}, []),
        ({**PLAN, "other": 1}, ["unknown_sections"]),
        ({**PLAN, "tools": {}}, ["tools_type"]),
        ({**PLAN, "hooks": [], "agents": {}}, []),
        ({**PLAN, "tools": ["x"]}, ["tools[0]_type"]),
        ({**PLAN, "tools": [{}]}, ["tools[0]_module_required"]),
        ({**PLAN, "tools": [{"module": 1}]}, ["tools[0]_module_type"]),
        ({**PLAN, "tools": [{"module": " "}]}, ["tools[0]_module_empty"]),
        (
            {**PLAN, "providers": [{"module": "p", "config": 1, "source": 2}]},
            ["providers[0]_config_type", "providers[0]_source_type"],
        ),
        (
            {"session": {"orchestrator": {"module": "o"}, "context": {"module": ""}}},
            ["session.context_module_empty"],
        ),
    ],
)
def test_a_plan_is_checked(plan: object, failed: list[str]) -> None:
    result = MountPlanValidator().validate(plan)

    assert [each.name for each in result.checks if not each.passed] == failed
    assert result.passed is (
        not [name for name in failed if name != "unknown_sections"]
    )
    assert result.summary().startswith("PASSED" if result.passed else "FAILED")
    assert (result.format_errors() == "No errors") is result.passed


async def test_a_loader_lists_what_is_installed_and_mounts_it() -> None:
    loader = ModuleLoader()
    found = {info.id: info for info in loader.discover()}
    coordinator = ModuleCoordinator()
    mount = await loader.load("context-simple", {}, None, coordinator)
    await loader.initialize(mount, coordinator)

    assert found["loop-basic"].type == "orchestrator"
    assert found["loop-basic"].mount_point == "orchestrator"
    assert found["loop-basic"].model_dump()["name"] == "Loop Basic"
    assert coordinator.get("context") is not None
    assert getattr(loader, "_added_paths") == []  # noqa: B009  # as applications read it
    loader.cleanup()


def test_a_registry_and_a_token_by_themselves() -> None:
    assert HookRegistry().list_handlers() == {}
    assert CancellationToken().request_cancellation()


async def test_a_session_that_was_not_entered_is_released_when_it_is_left() -> None:
    session = AmplifierSession(PLAN)
    released: list[str] = []
    session.coordinator.register_cleanup(lambda: released.append("done"))
    await session.__aexit__(None, None, None)

    assert released == ["done"]


async def test_the_hooks_are_in_the_table_of_mount_points() -> None:
    for coordinator in (ModuleCoordinator(), AmplifierSession(PLAN).coordinator):
        table = coordinator.mount_points
        assert list(table) == [*dict.fromkeys(table)]
        assert "hooks" in table
        assert len(table) == len(list(table))
        assert table["hooks"] is coordinator.hooks
        with pytest.raises(ValueError, match="Hooks should be registered"):
            coordinator.mount("hooks", object())
        await coordinator.unmount("hooks")
        with pytest.raises(ValueError, match="Name required"):
            await coordinator.unmount("tools")


async def test_a_turns_injections_are_counted() -> None:
    coordinator = ModuleCoordinator()
    counter = "_current_turn_injections"
    setattr(coordinator, counter, 5)
    assert getattr(coordinator, counter) == 5
    coordinator.reset_turn()

    assert getattr(coordinator, counter) == 0


async def test_data_and_plans_may_be_models() -> None:
    seen: list[object] = []
    plan = amplifier_core.ToolSpec(name="t", parameters={"a": 1})
    coordinator = ModuleCoordinator(MagicMock(config=plan, session_id="s"))
    coordinator.hooks.register("x", lambda event, data: seen.append(data["name"]))
    await coordinator.hooks.emit("x", plan)
    await coordinator.hooks.emit_and_collect("x", plan)
    await coordinator.hooks.emit("other", "no data")

    assert seen == ["t", "t"]
    assert coordinator.config["name"] == "t"


async def test_anything_may_be_mounted_by_hand_before_the_start() -> None:
    session = AmplifierSession(PLAN)
    loop = object()
    await session.coordinator.mount("orchestrator", loop)

    assert session.coordinator.get("orchestrator") is loop
