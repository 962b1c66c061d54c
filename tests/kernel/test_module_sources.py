"""Module sources: the application's resolver is asked, and the folder it names is where the code comes from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, MutableMapping
from functools import partial
from pathlib import Path
from threading import Event, current_thread, main_thread

import anyio
import attrs
import pytest

from amplifier import AmplifierSession, ModuleCoordinator, ModuleLoader
from amplifier.kernel.modules.projects import MAX_BYTES, project_table
from amplifier.kernel.modules.resolvers import find_source
from amplifier_sdk.contracts import ModuleSource, ModuleSourceResolver
from amplifier_sdk.errors import (
    ModuleConflictError,
    ModuleError,
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
)
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    ScriptedProvider,
    build_plan,
    mounting,
)
from tests.kernel.packages import conventional, install, project, tool_source

Reports = list[MutableMapping[str, object]]


@attrs.frozen
class Folder:
    """A source that is a path, or fails."""

    path: object

    def resolve(self) -> Path:
        if isinstance(self.path, BaseException):
            raise self.path
        assert isinstance(self.path, Path)
        return self.path


@attrs.define
class Resolver:
    """Knows folders by module id, and keeps what it was asked."""

    folders: Mapping[str, object] = attrs.field(factory=dict)
    asked: list[tuple[str, object]] = attrs.field(factory=list)

    def resolve(self, module_id: str, source_hint: object = None) -> Folder:
        self.asked.append((module_id, source_hint))
        if module_id not in self.folders:
            raise ModuleNotFoundError(module_id, "nobody told me")
        return Folder(self.folders[module_id])


def a_session(
    resolver: object, *tools: object, site: Path | None = None, **limits: float
) -> AmplifierSession:
    modules = {
        "loop": mounting(EchoLoop()),
        "context": mounting(MemoryContext()),
        "provider": mounting(ScriptedProvider("hi")),
    }
    loader = ModuleLoader(
        search_paths=[], modules=modules, path=[] if site is None else [str(site)]
    )
    session = AmplifierSession(
        build_plan(providers=["provider"], tools=tools, limits=limits), loader
    )
    if resolver is not None:
        session.coordinator.mount("module-source-resolver", resolver)  # type: ignore[unused-awaitable]  # awaiting is optional
    return session


async def the_tools(session: AmplifierSession) -> list[str]:
    """Open a session and return the tools that it has; raise what kept one away."""
    with anyio.fail_after(10):
        async with session:
            for failure in session.failures:
                raise failure
            return list(session.coordinator.tools)


def test_what_seed_s_resolver_looks_like_satisfies_contracts() -> None:
    assert isinstance(Resolver(), ModuleSourceResolver)
    assert isinstance(Folder(Path()), ModuleSource)


# -- where the code is


async def test_a_module_comes_from_the_folder_that_its_source_names(
    tmp_path: Path, module_id: str
) -> None:
    """The folder is a project; its package has the name that the id suggests."""
    folder = project(
        tmp_path / "code",
        {f"{conventional(module_id)}/__init__.py": tool_source("here")},
    )
    resolver = Resolver({module_id: folder})

    tools = await the_tools(
        a_session(
            resolver, {"module": module_id, "source": "git+https://example.org/x"}
        )
    )

    assert tools == ["here"]
    assert resolver.asked == [(module_id, "git+https://example.org/x")]


@pytest.mark.parametrize("where", ["", "src/"])
@pytest.mark.parametrize("kind", ["package", "file"])
async def test_the_package_lies_in_the_project_or_in_its_src_folder(
    tmp_path: Path, module_id: str, where: str, kind: str
) -> None:
    ending = "/__init__.py" if kind == "package" else ".py"
    folder = project(
        tmp_path / "code",
        {f"{where}{conventional(module_id)}{ending}": tool_source("found")},
    )

    assert await the_tools(a_session(Resolver({module_id: folder}), module_id)) == [
        "found"
    ]


async def test_the_folder_may_be_the_package_itself(
    tmp_path: Path, package: str
) -> None:
    folder = project(tmp_path / package, {"__init__.py": tool_source("itself")})

    assert await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x")) == [
        "itself"
    ]


async def test_project_s_entry_point_says_what_stands_for_module(
    tmp_path: Path, package: str
) -> None:
    source = tool_source("named").replace("async def mount", "async def start")
    folder = project(
        tmp_path / "code",
        {f"src/{package}/_impl.py": source, f"src/{package}/__init__.py": ""},
    )
    text = f'[project]\nname = "x"\n[project.entry-points."amplifier.modules"]\ntool-x = "{package}._impl:start"\n'
    (folder / "pyproject.toml").write_text(text)

    assert await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x")) == [
        "named"
    ]


async def test_a_folder_of_installed_packages_is_read_by_its_metadata(
    tmp_path: Path, package: str
) -> None:
    install(
        tmp_path,
        "x-dist",
        {"tool-x": f"{package}:mount"},
        {f"{package}.py": tool_source("installed")},
    )

    assert await the_tools(a_session(Resolver({"tool-x": tmp_path}), "tool-x")) == [
        "installed"
    ]


async def test_distributions_sharing_a_folder_are_both_named(
    tmp_path: Path,
) -> None:
    for name in ("first", "second"):
        install(tmp_path, f"{name}-dist", {"tool-x": f"{name}:mount"}, {})

    with pytest.raises(
        ModuleConflictError,
        match=r"claimed by first-dist .* and second-dist .*remove one of them",
    ):
        await the_tools(a_session(Resolver({"tool-x": tmp_path}), "tool-x"))


async def test_lone_decorated_name_stands_for_module(
    tmp_path: Path, module_id: str
) -> None:
    source = "from amplifier_sdk import tool\n\n@tool\ndef shout(text: str) -> str:\n    return text.upper()\n"
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}/__init__.py": source}
    )

    assert await the_tools(a_session(Resolver({module_id: folder}), module_id)) == [
        "shout"
    ]


async def test_package_of_another_name_is_taken_when_it_is_only_one(
    tmp_path: Path, module_id: str
) -> None:
    folder = project(
        tmp_path / "code",
        {f"{conventional(module_id)}/__init__.py": tool_source("only")},
    )

    assert await the_tools(a_session(Resolver({"my-tool": folder}), "my-tool")) == [
        "only"
    ]


async def test_files_beside_package_are_importable_while_open(
    tmp_path: Path, module_id: str, package: str
) -> None:
    files = {
        f"{conventional(module_id)}/__init__.py": tool_source(
            "uses", imports=f"import {package}"
        ),
        f"{package}.py": "",
    }
    folder = project(tmp_path / "code", files)

    async with a_session(Resolver({module_id: folder}), module_id) as session:
        assert session.failures == ()
        assert sys.path[-1] == str(folder)

    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("files", "modules", "problem"),
    [
        (
            {},
            None,
            "has neither '__init__.py', nor a pyproject.toml that names the module, nor a package",
        ),
        ({"other.py": ""}, {"tool-y": "other:mount"}, "it offers tool-y"),
        (
            {
                "amplifier_module_a.py": "",
                "src/amplifier_module_b.py": "",
                "amplifier_module_c/x": "",
            },
            None,
            "several modules (amplifier_module_a, amplifier_module_c, amplifier_module_b) and none is",
        ),
    ],
)
async def test_a_folder_without_the_module_says_what_it_holds(
    tmp_path: Path, files: dict[str, str], modules: dict[str, str] | None, problem: str
) -> None:
    folder = project(tmp_path / "code", files, modules)

    with pytest.raises(ModuleNotFoundError) as caught:
        await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x"))

    assert f"{folder} does not hold it; it " in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "x = 1",
            "has neither 'mount' nor a decorated name; name its module in the entry points",
        ),
        (
            "from amplifier_sdk import tool\n@tool\ndef a() -> str: ...\n@tool\ndef b() -> str: ...\n",
            "has several decorated names (a, b)",
        ),
    ],
)
async def test_package_that_does_not_say_what_module_is_is_refused(
    tmp_path: Path, module_id: str, source: str, problem: str
) -> None:
    folder = project(tmp_path / "code", {f"{conventional(module_id)}.py": source})

    with pytest.raises(ModuleLoadError) as caught:
        await the_tools(a_session(Resolver({module_id: folder}), module_id))

    assert problem in str(caught.value)


async def test_entry_point_outside_project_is_load_error(
    tmp_path: Path,
) -> None:
    folder = project(tmp_path / "code", {}, {"tool-x": "not_there_at_all:mount"})

    with pytest.raises(ModuleLoadError, match="No module named 'not_there_at_all'"):
        await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x"))


@pytest.mark.parametrize("text", ["[project", '[project]\nname = "\xff"', "\0"])
async def test_a_project_file_that_cannot_be_read_is_named(
    tmp_path: Path, text: str
) -> None:
    folder = project(tmp_path / "code", {})
    (folder / "pyproject.toml").write_bytes(text.encode("latin-1"))

    with pytest.raises(ModuleLoadError) as caught:
        await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x"))

    assert f"{folder / 'pyproject.toml'} cannot be read: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a" * (MAX_BYTES + 1), "it is larger than 4000000 bytes"),
        (f"{'a.' * 501}b = 1", "a key has more than 500 parts"),
        (f"x = {'[' * 100_000}", "it nests too deep"),
    ],
    ids=["large", "long-key", "deep"],
)
def test_a_project_file_is_read_as_far_as_that_costs_little(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)

    with pytest.raises(ValueError, match=problem):
        project_table(str(path))


def test_a_project_file_that_is_gone_by_now_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file or directory"):
        project_table(str(tmp_path / "pyproject.toml"))


@pytest.mark.parametrize("text", ["", "project = 3", '[project]\nentry-points = "x"'])
async def test_a_project_file_without_entry_points_offers_nothing(
    tmp_path: Path, module_id: str, text: str
) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("by name")}
    )
    (folder / "pyproject.toml").write_text(text)

    assert await the_tools(a_session(Resolver({module_id: folder}), module_id)) == [
        "by name"
    ]


# -- how a resolver is asked


def record(into: dict[str, object], /, **hints: object) -> Folder:
    into.update(hints)
    raise ModuleNotFoundError("x", "asked")


def hinted(function: Callable[..., object]) -> object:  # type: ignore[explicit-any]  # any signature is the point
    return type("AnyResolver", (), {"resolve": staticmethod(function)})()


SEEN: dict[str, object] = {}


def by_source_hint(module_id: str, source_hint: object = None) -> Folder:
    return record(SEEN, source_hint=source_hint)


def by_profile_hint(module_id: str, profile_hint: object = None) -> Folder:
    return record(SEEN, profile_hint=profile_hint)


def by_profile_source(module_id: str, *, profile_source: object) -> Folder:
    return record(SEEN, profile_source=profile_source)


def by_both(
    module_id: str, source_hint: object = None, profile_hint: object = None
) -> Folder:
    return record(SEEN, source_hint=source_hint, profile_hint=profile_hint)


def by_any(module_id: str, **hints: object) -> Folder:
    return record(SEEN, **hints)


def by_position(module_id: str, where: object, /) -> Folder:
    return record(SEEN, where=where)


def by_arguments(*arguments: object) -> Folder:
    return record(SEEN, arguments=arguments[1:])


def without(module_id: str) -> Folder:
    return record(SEEN, nothing=True)


@pytest.mark.parametrize(
    ("function", "seen"),
    [
        (by_source_hint, {"source_hint": "here"}),
        (by_profile_hint, {"profile_hint": "here"}),
        (by_profile_source, {"profile_source": "here"}),
        (by_both, {"source_hint": "here", "profile_hint": "here"}),
        (
            by_any,
            {"source_hint": "here", "profile_hint": "here", "profile_source": "here"},
        ),
        (by_position, {"where": "here"}),
        (by_arguments, {"arguments": ("here",)}),
        (without, {"nothing": True}),
    ],
)
async def test_source_reaches_resolver_under_name_that_it_takes(
    function: Callable[[str], Folder], seen: dict[str, object]
) -> None:
    SEEN.clear()

    with pytest.raises(ModuleNotFoundError):
        await the_tools(
            a_session(hinted(function), {"module": "tool-x", "source": "here"})
        )

    assert seen == SEEN


async def test_resolver_whose_signature_cannot_be_read_gets_two_args() -> None:
    with pytest.raises(ModuleLoadError, match=r"resolve failed: TypeError"):
        await find_source(hinted(type), "tool-x", "here", 5)


async def test_an_async_resolver_is_awaited(tmp_path: Path, module_id: str) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("awaited")}
    )

    class Async:
        async def async_resolve(
            self, module_id: str, source_hint: object = None
        ) -> Folder:
            await anyio.lowlevel.checkpoint()
            return Folder(folder)

        def resolve(self, module_id: str, source_hint: object = None) -> Folder:
            raise AssertionError("the other one is asked")

    assert await the_tools(a_session(Async(), module_id)) == ["awaited"]


async def test_async_function_under_name_of_sync_one_is_awaited_too(
    tmp_path: Path, module_id: str
) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("awaited")}
    )

    class Async:
        async def resolve(self, module_id: str, source_hint: object = None) -> Folder:
            await anyio.lowlevel.checkpoint()
            return Folder(folder)

    assert await the_tools(a_session(Async(), module_id)) == ["awaited"]


async def test_what_blocks_runs_in_a_thread(tmp_path: Path, module_id: str) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("threaded")}
    )
    threads = []

    class Blocking(Resolver):
        def resolve(self, module_id: str, source_hint: object = None) -> Folder:
            threads.append(current_thread())
            return BlockingFolder(folder)

    class BlockingFolder(Folder):
        def resolve(self) -> Path:
            threads.append(current_thread())
            return super().resolve()

    assert await the_tools(a_session(Blocking(), module_id)) == ["threaded"]
    assert main_thread() not in threads
    assert len(threads) == 2


@pytest.mark.parametrize("where", ["resolver", "source"])
async def test_a_source_that_takes_too_long_is_given_up(where: str) -> None:
    gate = Event()

    class Slow:
        def resolve(self) -> Path:
            gate.wait(20)
            raise AssertionError("nobody waits for this")

    slow = hinted(lambda module_id: Slow() if where == "source" else Slow().resolve())
    try:
        with pytest.raises(ModuleLoadError, match=r"resolve took longer than 0\.05 s"):
            await the_tools(a_session(slow, "tool-x", source_timeout=0.05))
    finally:
        gate.set()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "answered with None, which has no method 'resolve'"),
        ("/tmp", "answered with '/tmp', which has no method 'resolve'"),
        (Folder(OSError("no network")), "Folder.resolve failed: OSError: no network"),
        (Folder(SystemExit(2)), "Folder.resolve failed: SystemExit: 2"),
        (
            Folder(Path("/not/there")),
            "Folder.resolve answered with /not/there, which is no folder",
        ),
        (
            hinted(lambda: 3),
            "AnyResolver.resolve answered with 3; it must be the path of a folder",
        ),
    ],
)
async def test_an_answer_that_is_no_folder_is_named_with_who_gave_it(
    answer: object, problem: str
) -> None:
    with pytest.raises(ModuleLoadError) as caught:
        await the_tools(a_session(hinted(lambda module_id: answer), "tool-x"))

    assert problem in str(caught.value)


async def test_a_failing_resolver_is_named(module_id: str) -> None:
    def resolve(module_id: str) -> Folder:
        raise KeyError("cache")

    with pytest.raises(
        ModuleLoadError, match=r"AnyResolver\.resolve failed: KeyError: 'cache'"
    ):
        await the_tools(a_session(hinted(resolve), "tool-x"))


def test_what_cannot_resolve_is_no_resolver() -> None:
    with pytest.raises(
        ModuleValidationError,
        match="str is no module source resolver: it has no method 'resolve'",
    ):
        ModuleCoordinator().mount("module-source-resolver", "git")  # type: ignore[unused-awaitable]  # awaiting is optional


async def test_what_written_into_table_and_cannot_resolve_named() -> None:
    session = a_session(None, "tool-x")
    session.coordinator.mount_points["module-source-resolver"] = 3

    with pytest.raises(
        ModuleValidationError,
        match="int is mounted as module source resolver and has no method",
    ):
        await the_tools(session)


# -- what is installed


async def test_module_unknown_to_resolver_is_sought_in_installed(
    site: Path, package: str
) -> None:
    install(
        site,
        "a-tool",
        {"tool-x": f"{package}:mount"},
        {f"{package}.py": tool_source("installed")},
    )
    resolver = Resolver()

    assert await the_tools(a_session(resolver, "tool-x", site=site)) == ["installed"]
    assert resolver.asked == [("tool-x", None)]


async def test_unknown_module_fails_with_resolver_error(
    site: Path,
) -> None:
    class NotHereError(ModuleNotFoundError):
        def __init__(self, name: str) -> None:
            super().__init__(name, "not in the registry")

    def resolve(module_id: str) -> Folder:
        raise NotHereError(module_id)

    install(site, "a-tool", {"tool-search": "x:mount"}, {})
    with pytest.raises(NotHereError) as caught:
        await the_tools(a_session(hinted(resolve), "tool-serch", site=site))

    text = str(caught.value)
    assert text.startswith(
        "Module 'tool-serch': not found; did you mean 'tool-search'?"
    )
    assert ". Sources: not in the registry (at tools[0] in the mount plan)" in text
    assert caught.value.path == "tools[0]"


async def test_source_not_there_is_no_reason_to_take_another_module(
    site: Path, package: str
) -> None:
    """The resolver knew the module; what is installed under its id may be something else."""
    install(
        site,
        "a-tool",
        {"tool-x": f"{package}:mount"},
        {f"{package}.py": tool_source("installed")},
    )
    resolver = Resolver({"tool-x": ModuleNotFoundError("tool-x", "the branch is gone")})

    with pytest.raises(ModuleNotFoundError, match="the branch is gone"):
        await the_tools(a_session(resolver, "tool-x", site=site))


@pytest.mark.parametrize("resolver", [None, Resolver()])
async def test_unresolved_source_is_reported_for_installed_module(
    site: Path, package: str, reports: Reports, resolver: object
) -> None:
    install(
        site,
        "a-tool",
        {"tool-x": f"{package}:mount"},
        {f"{package}.py": tool_source("installed")},
    )

    tools = await the_tools(
        a_session(
            resolver, {"module": "tool-x", "source": "git+https://a/b"}, site=site
        )
    )

    assert tools == ["installed"]
    (report,) = reports
    assert (report["event"], report["module"], report["source"]) == (
        "module.source_not_used",
        "tool-x",
        "git+https://a/b",
    )
    assert str(report["used"]).endswith("a_tool-1.0.dist-info")


async def test_unresolved_source_is_in_error_of_missing_module() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        await the_tools(a_session(None, {"module": "tool-x", "source": "./x"}))

    expected = "Its source './x' was not used: no resolver that knows it is mounted at 'module-source-resolver'."
    assert expected in str(caught.value)


async def test_an_application_s_own_module_needs_no_source(reports: Reports) -> None:
    resolver = Resolver()
    plan = {
        "session": {
            "orchestrator": "loop",
            "orchestrator_source": "x",
            "context": "context",
        }
    }
    session = AmplifierSession(plan, a_session(None).loader)
    await session.coordinator.mount("module-source-resolver", resolver)

    assert await the_tools(session) == []
    assert resolver.asked == []
    assert reports == []


# -- one name, one folder


async def test_second_package_of_taken_name_names_both_folders(
    tmp_path: Path, package: str
) -> None:
    folders = {
        name: project(
            tmp_path / name,
            {f"{package}/__init__.py": tool_source(name)},
            {name: f"{package}:mount"},
        )
        for name in ("tool-one", "tool-two")
    }

    async with a_session(Resolver(folders), "tool-one", "tool-two") as session:
        (failure,) = session.failures
        assert list(session.coordinator.tools) == ["tool-one"]

    assert isinstance(failure, ModuleConflictError)
    assert f"brings the package '{package}' in {folders['tool-two'] / package}" in str(
        failure
    )
    assert f"taken by {folders['tool-one'] / package}" in str(failure)


async def test_a_module_cannot_replace_a_package_of_python(tmp_path: Path) -> None:
    folder = project(
        tmp_path / "code", {"json.py": tool_source("evil")}, {"tool-x": "json:mount"}
    )

    with pytest.raises(ModuleConflictError, match=r"that name is taken by .*json"):
        await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x"))


async def test_file_beside_module_does_not_shadow_stdlib_package(
    tmp_path: Path, module_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a source brings comes after everything that the interpreter has."""
    files = {
        f"{conventional(module_id)}.py": tool_source(
            "honest", imports="import colorsys"
        ),
        "colorsys.py": "raise SystemExit('taken over')",
    }
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    assert await the_tools(
        a_session(Resolver({module_id: project(tmp_path / "code", files)}), module_id)
    ) == ["honest"]


async def test_a_source_wins_over_an_installed_package_of_its_name(
    site: Path, tmp_path: Path, package: str
) -> None:
    """Naming a source means that this is the code to run."""
    (site / f"{package}.py").write_text(tool_source("installed"))
    folder = project(
        tmp_path / "code",
        {f"{package}.py": tool_source("source")},
        {"tool-x": f"{package}:mount"},
    )

    assert await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x")) == [
        "source"
    ]


async def test_failed_source_import_leaves_name_free(
    site: Path, tmp_path: Path, package: str
) -> None:
    install(
        site,
        "a-tool",
        {"tool-x": f"{package}:mount"},
        {f"{package}.py": tool_source("installed")},
    )
    folder = project(
        tmp_path / "code",
        {f"{package}.py": "raise ValueError('broken')"},
        {"tool-x": f"{package}:mount"},
    )

    with pytest.raises(ModuleLoadError, match="ValueError: broken"):
        await the_tools(a_session(Resolver({"tool-x": folder}), "tool-x"))

    assert await the_tools(a_session(None, "tool-x", site=site)) == ["installed"]


async def test_sessions_share_a_source_and_release_it_separately(
    tmp_path: Path, module_id: str
) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("shared")}
    )
    first, second = (
        a_session(Resolver({module_id: folder}), module_id) for _ in range(2)
    )

    await first.initialize()
    await second.initialize()
    await first.cleanup()
    assert sys.path.count(str(folder)) == 1
    await second.cleanup()

    assert str(folder) not in sys.path
    assert first.failures == second.failures == ()


async def test_a_session_that_cannot_start_frees_the_path(
    tmp_path: Path, package: str
) -> None:
    folder = project(
        tmp_path / "code",
        {f"{package}.py": "raise ValueError"},
        {"hooks-x": f"{package}:mount"},
    )
    session = AmplifierSession(build_plan(hooks=["hooks-x"]), a_session(None).loader)
    await session.coordinator.mount(
        "module-source-resolver", Resolver({"hooks-x": folder})
    )

    with pytest.raises(ModuleError, match="ValueError"):
        await session.initialize()

    assert str(folder) not in sys.path


async def test_a_folder_that_is_on_the_path_anyway_stays_there(
    site: Path, module_id: str
) -> None:
    (site / f"{conventional(module_id)}.py").write_text(tool_source("there"))

    assert await the_tools(a_session(Resolver({module_id: site}), module_id)) == [
        "there"
    ]
    assert str(site) in sys.path


async def test_a_path_that_somebody_else_removed_is_no_problem(
    tmp_path: Path, module_id: str
) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("x")}
    )

    async with a_session(Resolver({module_id: folder}), module_id):
        sys.path.remove(str(folder))

    assert str(folder) not in sys.path


async def test_a_call_bound_beforehand_is_asked_as_it_is(
    tmp_path: Path, module_id: str
) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("bound")}
    )

    class Bound:
        resolve = staticmethod(partial(lambda path, module_id: Folder(path), folder))

    assert await the_tools(a_session(Bound(), module_id)) == ["bound"]
