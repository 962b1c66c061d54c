"""How the samples of the module source protocol are run."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from amplifier import AmplifierModuleLoader, AmplifierSession, ModuleCoordinator
from amplifier_sdk import (
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleSource,
    ModuleSourceResolver,
)
from tests.seeds.preamble import names
from tests.seeds.runs.tools import parameters_of
from tests.seeds.samples import Sample

NUMBERS = count()
CODE = """
from amplifier_sdk import tool

@tool
def greet(name: str) -> str:
    "Greet."
    return f"Hello {name}"
"""


class FileSource:
    """What the samples leave to their reader."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resolve(self) -> Path:
        return self.path


def package(folder: Path) -> str:
    """Write a module package and return the module's id, another one each time."""
    module_id = f"tool-seed-{next(NUMBERS)}"
    name = f"amplifier_module_{module_id.replace('-', '_')}"
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(CODE)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "amplifier-module-{module_id}"\nversion = "1"\n'
        f'[project.entry-points."amplifier.modules"]\n{module_id} = "{name}:greet"\n'
    )
    return module_id


def plan(module: object) -> dict[str, object]:
    scripted = {"module": "provider-scripted", "config": {"responses": ["Hi."]}}
    return {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [scripted],
        "tools": [module],
    }


async def source(sample: Sample) -> None:
    ran = await sample.run(names())
    ours, theirs = ModuleSource.resolve, ran.ModuleSource.resolve
    assert parameters_of(ours) == parameters_of(theirs)
    assert isinstance(FileSource(Path()), ModuleSource)


async def resolver(sample: Sample) -> None:
    ran = await sample.run(names())

    class Mine(ran.ModuleSourceResolver):  # type: ignore[name-defined, misc]  # the sample's
        def resolve(self, module_id: str, profile_hint: object = None) -> FileSource:
            if profile_hint is None:
                raise ModuleNotFoundError(module_id, "no hint names it")
            return FileSource(Path(str(profile_hint)))

    assert isinstance(Mine(), ModuleSourceResolver)
    with TemporaryDirectory() as folder:
        module_id = package(Path(folder))
        session = AmplifierSession(plan({"module": module_id, "source": folder}))
        await session.coordinator.mount("module-source-resolver", Mine())
        async with session:
            assert list(session.coordinator.tools) == ["greet"]


async def loader(sample: Sample) -> None:
    """Its loader finds a resolver where ours does, and asks it in the same way."""
    ran = await sample.run(names())
    asked: list[object] = []

    class Resolver:
        def resolve(self, module_id: str, profile_hint: object = None) -> FileSource:
            asked.append((module_id, profile_hint))
            return FileSource(Path())

    async def load_direct(module_id: str, config: object) -> str:
        return f"direct {module_id}"

    coordinator = ModuleCoordinator()
    theirs = ran.ModuleLoader(coordinator)
    theirs._load_direct = load_direct
    assert await theirs.load("tool-a") == "direct tool-a"
    await coordinator.mount("module-source-resolver", Resolver())
    await theirs.load("tool-a", {}, "here")
    ours = AmplifierModuleLoader(coordinator)
    assert ours.coordinator is theirs.coordinator
    with pytest.raises(ModuleNotFoundError):
        await ours.load("tool-a", {}, "here")
    assert asked == [("tool-a", "here")] * 2


async def mounted(sample: Sample) -> None:
    """A resolver is mounted without `await`; the loader that is made afterwards uses it."""
    with TemporaryDirectory() as folder:
        module_id = package(Path(folder))

        class Custom:
            def resolve(self, name: str, profile_hint: object = None) -> FileSource:
                return FileSource(Path(folder))

        coordinator = ModuleCoordinator()
        ran = await sample.run(
            names(CustomModuleSourceResolver=Custom, coordinator=coordinator)
        )
        assert coordinator.get("module-source-resolver") is ran.resolver
        mount = await ran.loader.load(module_id)
        await mount(coordinator)
        assert list(coordinator.tools) == ["greet"]


async def not_found(sample: Sample) -> None:
    """A resolver that raises it: the session names the module, and what the resolver said."""
    ran = await sample.run(names())
    assert ran.ModuleNotFoundError.__name__ == ModuleNotFoundError.__name__
    assert issubclass(ModuleNotFoundError, Exception)
    async with AmplifierSession(plan("tool-unheard-of")) as session:
        (failure,) = session.failures
    assert isinstance(failure, ModuleNotFoundError)
    assert "tool-unheard-of" in str(failure)


async def load_error(sample: Sample) -> None:
    ran = await sample.run(names())
    assert ran.ModuleLoadError.__name__ == ModuleLoadError.__name__
    with TemporaryDirectory() as folder:
        module_id = package(Path(folder))
        (init,) = Path(folder).glob("*/__init__.py")
        init.write_text("import nothing_of_this_name")
        session = AmplifierSession(plan({"module": module_id, "source": folder}))

        class Resolver:
            def resolve(self, name: str, profile_hint: object = None) -> FileSource:
                if name != module_id:
                    raise ModuleNotFoundError(name, "another module's")
                return FileSource(Path(folder))

        await session.coordinator.mount("module-source-resolver", Resolver())
        async with session:
            (failure,) = session.failures
    assert isinstance(failure, ModuleLoadError)
    assert "nothing_of_this_name" in str(failure)


async def custom(sample: Sample) -> None:
    """Overrides come first, then the hint of the plan, then an installed package."""

    class PackageSource:
        def __init__(self, package: str) -> None:
            raise ModuleNotFoundError(package, "not installed")

    scope = names(FileSource=FileSource, PackageSource=PackageSource)
    ran = await sample.run(scope)
    made = ran.MyCustomResolver()
    made.parse_profile_hint = lambda hint: FileSource(Path(str(hint)))
    with TemporaryDirectory() as folder:
        overridden = package(Path(folder) / "a")
        hinted = package(Path(folder) / "b")
        made.overrides = {overridden: Path(folder) / "a"}
        for module in (
            overridden,
            {"module": hinted, "source": str(Path(folder) / "b")},
        ):
            session = AmplifierSession(plan(module))
            await session.coordinator.mount("module-source-resolver", made)
            async with session:
                assert list(session.coordinator.tools) == ["greet"]
    with pytest.raises(ModuleNotFoundError, match="myapp-module-other"):
        made.resolve("other")
