"""Loading modules: from metadata to something mounted, each failure named with its module and distribution."""

from __future__ import annotations

import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from threading import Event
from types import ModuleType, SimpleNamespace

import anyio
import pytest
from pluggy import HookimplMarker

from amplifier import AmplifierSession, ModuleLoader
from amplifier.kernel.modules.sources import FoundModule, installed_modules
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import (
    ModuleConflictError,
    ModuleError,
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
)
from amplifier_sdk.hookspecs import PROJECT, amplifier_provider, amplifier_tool
from amplifier_sdk.jsontypes import JSONValue
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    Recorder,
    ScriptedProvider,
    Worker,
    build_loader,
    build_plan,
    mounting,
)
from tests.kernel.packages import install, tool_source

Reports = list[MutableMapping[str, object]]


def a_session(site: Path, *tools: object) -> AmplifierSession:
    """A session of doubles whose tools are found in a folder."""
    loader = ModuleLoader(
        modules={
            "loop": mounting(EchoLoop()),
            "context": mounting(MemoryContext()),
            "provider": mounting(ScriptedProvider("hi")),
        },
        path=[str(site), str(site / "missing"), ""],
    )
    return AmplifierSession(
        build_plan(providers=["provider"], tools=tools, limits={"import_timeout": 5}),
        loader,
    )


async def the_failure(session: AmplifierSession) -> ModuleError:
    """Start a session whose only tool fails; it starts all the same and says why."""
    recorder = Recorder.of(session.coordinator.hooks, "module:*")
    with anyio.fail_after(10):
        async with session:
            assert await session.execute("go") == "hi"
            (failure,) = session.failures
    announced = recorder.one("module:load_failed")
    assert (announced["module_id"], announced["error"]) == (
        failure.module_id,
        str(failure),
    )
    return failure


async def test_an_installed_module_is_imported_when_the_plan_names_it(
    site: Path, package: str
) -> None:
    target = f"{package}:mount"
    install(
        site,
        "a-tool",
        {"tool-a": target, "tool-b": "not_there:mount"},
        {f"{package}.py": tool_source("a")},
    )
    assert package not in sys.modules

    async with a_session(site, "tool-a") as session:
        assert list(session.coordinator.tools) == ["a"]
        assert session.failures == ()

    assert package in sys.modules


async def test_module_not_there_named_with_nearest_and_where_searched(
    site: Path,
) -> None:
    install(site, "a-tool", {"tool-search": "x:mount"}, {})

    failure = await the_failure(a_session(site, "tool-serch"))

    assert isinstance(failure, ModuleNotFoundError)
    text = str(failure)
    assert "Module 'tool-serch': not found; did you mean 'tool-search'?" in text
    assert (
        "application's own modules (3) and the entry points of group 'amplifier.modules' in 3 folders"
        in text
    )
    assert ". There are: tool-search (" in text
    assert "amplifier-module-tool-serch" not in text


async def test_a_beginning_alone_makes_no_names_alike(site: Path) -> None:
    install(site, "a-tool", {"tool-search": "x:mount"}, {})

    failure = await the_failure(a_session(site, "tool-xyz"))

    assert "did you mean" not in str(failure)


async def test_without_any_module_the_message_says_so() -> None:
    session = AmplifierSession(build_plan(), ModuleLoader(path=[]))

    with pytest.raises(ModuleNotFoundError, match="There are: none"):
        await session.initialize()


async def test_a_module_installed_after_the_last_look_is_found(
    site: Path, package: str
) -> None:
    assert installed_modules([str(site)]) == ()
    install(
        site,
        "a-tool",
        {"tool-a": f"{package}:mount"},
        {f"{package}.py": tool_source("a")},
    )

    async with AmplifierSession(*plan_and_loader(site)) as session:
        assert list(session.coordinator.tools) == ["a"]


def plan_and_loader(site: Path) -> tuple[Mapping[str, object], ModuleLoader]:
    modules = {"loop": mounting(EchoLoop()), "context": mounting(MemoryContext())}
    return build_plan(tools=["tool-a"]), ModuleLoader(modules=modules, path=[str(site)])


async def test_two_distributions_that_claim_one_id_are_both_named(site: Path) -> None:
    install(site, "first-tool", {"tool-a": "x:mount"}, {})
    install(site, "second-tool", {"tool-a": "y:mount"}, {})

    failure = await the_failure(a_session(site, "tool-a"))

    assert isinstance(failure, ModuleConflictError)
    assert "claimed by first-tool (" in str(failure)
    assert "and second-tool (" in str(failure)
    assert "uninstall or remove one of them" in str(failure)


async def test_an_application_s_own_module_wins_over_an_installed_one(
    site: Path,
) -> None:
    install(site, "a-tool", {"tool-a": "broken:mount"}, {})
    modules = {"loop": EchoLoop(), "context": MemoryContext(), "tool-a": Worker("own")}

    async with AmplifierSession(
        build_plan(tools=["tool-a"]), build_loader(modules)
    ) as session:
        assert list(session.coordinator.tools) == ["own"]


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        (
            "import nonexistent_thing",
            ":mount",
            "ModuleNotFoundError: No module named 'nonexistent_thing'",
        ),
        ("def broken(:", ":mount", "SyntaxError: "),
        ("raise SystemExit(3)", ":mount", "SystemExit: 3"),
        ("raise TimeoutError('away')", ":mount", "TimeoutError: away"),
        ("x = 1", ":mount", "AttributeError: module"),
        (
            "class A: pass",
            ":A.B.mount",
            "AttributeError: type object 'A' has no attribute 'B'",
        ),
    ],
)
async def test_module_that_cannot_be_imported_named_with_distribution(
    site: Path, package: str, source: str, target: str, problem: str
) -> None:
    install(site, "a-tool", {"tool-a": package + target}, {f"{package}.py": source})

    failure = await the_failure(a_session(site, "tool-a"))

    assert isinstance(failure, ModuleLoadError)
    assert failure.distribution == "a-tool"
    prefix = f"Module 'tool-a' (from a-tool): importing '{package}{target}' failed: "
    assert str(failure).startswith(prefix + problem)


async def test_a_module_whose_import_hangs_is_given_up(
    site: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = SimpleNamespace(event=Event())
    monkeypatch.setitem(sys.modules, "kernel_test_gate", gate)
    source = "import kernel_test_gate\nkernel_test_gate.event.wait(20)"
    install(site, "a-tool", {"tool-a": f"{package}:mount"}, {f"{package}.py": source})
    session = a_session(site, "tool-a")
    loader = session.loader
    plan = build_plan(
        providers=["provider"], tools=["tool-a"], limits={"import_timeout": 0.05}
    )
    try:
        failure = await the_failure(AmplifierSession(plan, loader))
    finally:
        gate.event.set()

    assert failure.reason == f"importing '{package}' took longer than 0.05 s"
    assert (
        str(failure)
        == f"Module 'tool-a' (from a-tool): {failure.reason} (at tools[0] in the mount plan)"
    )


async def test_concurrent_imports_of_one_module_are_shared(
    site: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = Event(), Event()
    gate = SimpleNamespace(begun=begun, go_on=go_on)
    monkeypatch.setitem(sys.modules, "kernel_test_gate", gate)
    source = (
        "import kernel_test_gate as g\ng.begun.set()\ng.go_on.wait(20)\n"
        + tool_source("a")
    )
    install(site, "a-tool", {"tool-a": f"{package}:mount"}, {f"{package}.py": source})
    sessions = [a_session(site, "tool-a"), a_session(site, "tool-a")]
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            try:
                group.start_soon(sessions[0].initialize)
                await anyio.to_thread.run_sync(begun.wait, 10)
                group.start_soon(sessions[1].initialize)
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
            finally:
                go_on.set()

    assert [
        (list(session.coordinator.tools), session.failures) for session in sessions
    ] == [(["a"], ())] * 2
    for session in sessions:
        await session.cleanup()


async def test_a_hook_module_that_cannot_be_loaded_ends_the_start(site: Path) -> None:
    """A session meant to have a policy must not start without it."""
    modules = {"loop": mounting(EchoLoop()), "context": mounting(MemoryContext())}
    session = AmplifierSession(
        build_plan(hooks=["hooks-policy"]),
        ModuleLoader(modules=modules, path=[str(site)]),
    )

    with pytest.raises(ModuleNotFoundError, match="hooks-policy"):
        await session.initialize()


# -- what an entry point may name


async def test_entry_point_may_name_package_of_hook_implementations(
    site: Path, package: str
) -> None:
    source = """
    from amplifier_sdk.hookspecs import amplifier_tool
    from tests.doubles import Worker

    @amplifier_tool.impl
    async def anything(coordinator, config):
        return Worker("from the package")
    """
    install(site, "a-tool", {"tool-a": package}, {f"{package}.py": source})

    async with a_session(site, "tool-a") as session:
        assert list(session.coordinator.tools) == ["from the package"]


async def test_a_package_with_a_mount_function_is_a_module() -> None:
    package = ModuleType("package")
    setattr(package, "mount", mounting(Worker("from a package")))  # noqa: B010  # a module has no such attribute

    async with a_session_of(package) as session:
        assert list(session.coordinator.tools) == ["from a package"]


async def test_an_object_with_a_mount_method_is_a_module() -> None:
    class Module:
        async def mount(
            self, coordinator: Coordinator, config: Mapping[str, JSONValue]
        ) -> object:
            return Worker("from an object")

    async with a_session_of(Module()) as session:
        assert list(session.coordinator.tools) == ["from an object"]


class Plugin:
    """A plugin object with an implementation of one hook."""

    @amplifier_tool.impl
    async def anything(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return Worker("from a hookimpl")


class WrongSection:
    @amplifier_provider.impl
    async def anything(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return ScriptedProvider()


class Misspelt:
    @HookimplMarker(PROJECT)
    async def amplifier_tol(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return None


class NotAsync:
    @HookimplMarker(PROJECT)
    def amplifier_tool(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return None


class WrongArgument:
    @HookimplMarker(PROJECT)
    async def amplifier_tool(
        self, coordinator: Coordinator, confg: Mapping[str, JSONValue]
    ) -> object:
        return None


async def sync_mount(coordinator: Coordinator) -> None: ...


def blocking_mount(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> None: ...


class Bare:
    pass


def a_session_of(module: object, *more: object) -> AmplifierSession:
    loader = ModuleLoader(
        modules={
            "loop": mounting(EchoLoop()),
            "context": mounting(MemoryContext()),
            "tool": module,
        },
        path=[],
    )
    return AmplifierSession(build_plan(tools=["tool", *more]), loader)


async def test_a_plugin_object_is_a_module_also_twice_under_two_names() -> None:
    async with a_session_of(
        Plugin(), {"module": "tool", "instance_id": "second"}
    ) as session:
        assert list(session.coordinator.tools) == ["from a hookimpl", "second"]


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (
            WrongSection(),
            r"tools\[0\] needs amplifier_tool, but it implements amplifier_provider",
        ),
        (Misspelt(), "amplifier_tol"),
        (NotAsync(), "an implementation of amplifier_tool is an 'async def' function"),
        (WrongArgument(), "confg"),
        (
            sync_mount,
            r"'mount' is called with \(coordinator, config\), but too many positional arguments",
        ),
        (blocking_mount, "'mount' is not a coroutine function; write 'async def mount"),
        (
            Bare(),
            "names Bare .* which has no 'mount' function, no amplifier_tool implementation and no decorator",
        ),
        (3, "names int 3, which has no 'mount'"),
    ],
)
async def test_what_cannot_be_mounted_says_what_it_lacks(
    module: object, problem: str
) -> None:
    async with a_session_of(module) as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleValidationError)
    with pytest.raises(ModuleValidationError, match=problem):
        raise failure


@pytest.mark.parametrize("where", ["function", "package", "decorator"])
async def test_a_module_in_the_wrong_section_is_refused(
    where: str, site: Path, package: str
) -> None:
    source = "__amplifier_module_type__ = 'provider'\n" + tool_source("a")
    match where:
        case "function":
            session = a_session_of(mounting(Worker(), declared="provider"))
        case "package":
            install(
                site,
                "a-tool",
                {"tool-a": f"{package}:mount"},
                {f"{package}.py": source},
            )
            session = a_session(site, "tool-a")
        case _:
            from amplifier_module_provider_scripted import ScriptedProvider as Decorated

            session = a_session_of(Decorated)
    async with session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleValidationError)
    assert (
        "tools[0] is a place for a tool, but the module declares the type 'provider'"
        in str(failure)
    )


async def test_declared_type_is_found_behind_private_mount(
    site: Path, package: str
) -> None:
    files = {
        f"{package}/__init__.py": f"from {package}._impl import mount\n__amplifier_module_type__ = 'hook'\n",
        f"{package}/_impl.py": tool_source("a"),
    }
    install(site, "a-tool", {"tool-a": f"{package}:mount"}, files)

    failure = await the_failure(a_session(site, "tool-a"))

    assert "declares the type 'hook'" in str(failure)


async def test_a_declared_type_that_fits_is_fine() -> None:
    async with a_session_of(mounting(Worker("typed"), declared="tool")) as session:
        assert list(session.coordinator.tools) == ["typed"]


# -- ready


READY = """
async def on_session_ready(coordinator):
    coordinator.session_state.setdefault("ready", []).append(sorted(coordinator.tools))
"""


async def test_modules_are_told_when_all_are_mounted(site: Path, package: str) -> None:
    files = {
        f"{package}/__init__.py": f"from {package}._impl import mount\n" + READY,
        f"{package}/_impl.py": tool_source("a"),
    }
    install(site, "a-tool", {"tool-a": f"{package}:mount"}, files)
    modules = {
        "loop": mounting(EchoLoop()),
        "context": mounting(MemoryContext()),
        "late": mounting(Worker("z")),
    }
    loader = ModuleLoader(modules=modules, path=[str(site)])

    async with AmplifierSession(
        build_plan(tools=["tool-a", "late"]), loader
    ) as session:
        assert session.coordinator.session_state["ready"] == [["a", "z"]]


SETTING_UP = """
from amplifier_sdk import ToolResult

class Late:
    name = "late"
    description = "Mounted when the session is ready."

    async def execute(self, input):
        return ToolResult(output="done")

async def on_session_ready(coordinator):
    coordinator.hooks.register("own:event", lambda event, data: None, name="late")
    await coordinator.mount("tools", Late())
"""


async def test_what_a_module_sets_up_when_told_goes_with_its_plugin(
    site: Path, package: str
) -> None:
    files = {
        f"{package}/__init__.py": f"from {package}._impl import mount\n" + SETTING_UP,
        f"{package}/_impl.py": tool_source("a"),
    }
    install(site, "a-tool", {"tool-a": f"{package}:mount"}, files)

    async with a_session(site, "tool-a") as session:
        coordinator = session.coordinator
        assert list(coordinator.tools) == ["a", "late"]
        assert coordinator.hooks.list_handlers("own:event") == {"own:event": ["late"]}

        coordinator.plugins.manager.unregister(name="tool-a")

        assert coordinator.tools == {}
        assert not coordinator.hooks.has_handlers("own:event")


@pytest.mark.parametrize(
    "raising", ["ValueError('not ready')", "SystemExit('not ready')"]
)
async def test_module_that_fails_when_told_announced_and_ends_nothing(
    raising: str, site: Path, package: str, reports: Reports
) -> None:
    source = (
        tool_source("a")
        + f"\nasync def on_session_ready(coordinator):\n    raise {raising}\n"
    )
    install(site, "a-tool", {"tool-a": f"{package}:mount"}, {f"{package}.py": source})
    session = a_session(site, "tool-a")
    recorder = Recorder.of(session.coordinator.hooks, "module:*")

    async with session:
        assert await session.execute("go") == "hi"

    announced = recorder.one("module:on_session_ready_failed")
    assert (announced["module_id"], announced["error"]) == (
        "tool-a",
        raising.replace("('", ": ").removesuffix("')"),
    )
    assert [report["event"] for report in reports] == ["module.on_session_ready_failed"]


async def test_what_is_not_a_coroutine_function_is_not_told(
    site: Path, package: str
) -> None:
    source = (
        tool_source("a")
        + "\ndef on_session_ready(coordinator):\n    raise ValueError\n"
    )
    install(site, "a-tool", {"tool-a": f"{package}:mount"}, {f"{package}.py": source})

    async with a_session(site, "tool-a") as session:
        assert session.failures == ()


# -- discovery


def test_installed_modules_are_listed_without_importing_any(site: Path) -> None:
    install(site, "b-tool", {"tool-b": "nowhere.at_all:Mount [extra]"}, {})
    install(site, "a-hook", {"hooks-a": "nowhere:mount"}, {}, ending="egg-info")
    loader = ModuleLoader(
        modules={"provider-x": Worker(), "mine": Worker()}, path=[str(site)]
    )

    listed = [
        (info.id, info.type, info.distribution, info.target)
        for info in loader.discover()
    ]

    assert [entry[:3] for entry in listed] == [
        ("hooks-a", "hook", "a-hook"),
        ("mine", "unknown", None),
        ("provider-x", "provider", None),
        ("tool-b", "tool", "b-tool"),
    ]
    assert listed[3][3] == "nowhere.at_all:Mount"
    assert "nowhere" not in sys.modules


def test_a_distribution_on_two_folders_of_the_path_counts_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        install(folder, "a-tool", {"tool-a": f"{folder.name}:mount"}, {})

    found = installed_modules([str(first), str(second), str(first)], refresh=True)

    assert found == (
        FoundModule(
            "tool-a", "first:mount", "a-tool", str(first / "a_tool-1.0.dist-info")
        ),
    )


def test_unreadable_or_foreign_metadata_is_skipped(
    tmp_path: Path,
) -> None:
    for name, content in {
        "none-1.0.dist-info": None,
        "other-1.0.dist-info": b"[console_scripts]\na = b:c\n",
        "binary-1.0.dist-info": b"\xff\xfe[amplifier.modules]",
    }.items():
        (tmp_path / name).mkdir()
        if content is not None:
            (tmp_path / name / "entry_points.txt").write_bytes(content)

    assert installed_modules([str(tmp_path)], refresh=True) == ()


def test_this_environment_s_own_path_is_searched_by_default(
    monkeypatch: pytest.MonkeyPatch, site: Path
) -> None:
    install(site, "a-tool", {"tool-from-sys-path": "x:mount"}, {})

    assert "tool-from-sys-path" in [
        found.id for found in installed_modules(refresh=True)
    ]
    assert "tool-from-sys-path" in [info.id for info in ModuleLoader().discover()]


def test_an_empty_entry_of_the_path_is_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(tmp_path, "a-tool", {"tool-here": "x:mount"}, {})
    monkeypatch.chdir(tmp_path)

    assert [found.id for found in installed_modules([""], refresh=True)] == [
        "tool-here"
    ]


async def test_the_message_counts_the_folders_of_the_default_path() -> None:
    session = AmplifierSession(
        {"session": {"orchestrator": "loop-of-nobody", "context": "x"}}
    )

    with pytest.raises(ModuleNotFoundError, match=f"in {len(sys.path)} folders"):
        await session.initialize()


async def test_a_session_of_installed_plugins_runs(site: Path) -> None:
    """The default modules load exactly as foreign ones do."""
    install(
        site,
        "plugins",
        {
            "loop-basic": "amplifier_module_loop_basic:BasicLoop",
            "context-simple": "amplifier_module_context_simple:SimpleContext",
            "provider-scripted": "amplifier_module_provider_scripted:ScriptedProvider",
        },
        {},
    )
    plan = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            {"module": "provider-scripted", "config": {"responses": ["installed"]}}
        ],
    }

    async with AmplifierSession(plan, ModuleLoader(path=[str(site)])) as session:
        assert await session.execute("go") == "installed"
