"""Adding a module to the settings, taking it out, keeping its source up to date; installing packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.modules.provenance import refresh_modules, resolver_of, trace_module
from amplifier.app.settings.settings import load_settings
from amplifier.app.sources import installers
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.entries import AddedModule, add_module, remove_module
from amplifier.app.sources.fetch_errors import SourceFetchError
from amplifier.app.sources.git import Git
from amplifier.app.sources.installers import Installer, find_installer
from amplifier.app.sources.locations import PackageLocation
from amplifier.app.sources.pins import look_at_package
from amplifier_sdk.errors import AmplifierError, ConfigError, ModuleNotFoundError
from tests.app.conftest import InstallModule
from tests.app.projects import trust, write
from tests.app.repositories import TOOL_FILES, commit


def add(
    dirs: AppDirs,
    module: str,
    source: str | None = None,
    *,
    kind: str | None = None,
    scope: str = "user",
    agreed: bool = False,
    offline: bool = False,
) -> AddedModule:
    cache = SourceCache.of(dirs, Git(offline=offline))
    return add_module(
        module,
        source,
        dirs=dirs,
        cache=cache,
        agree=lambda *_: agreed,
        kind=kind,
        scope=scope,
    )


@pytest.mark.process
def test_a_module_of_a_repository_is_pinned_and_named(
    dirs: AppDirs, repository: Path
) -> None:
    source = f"git+file://{repository}@main"
    added = add(dirs, "tool-acme", source)

    assert (added.source, added.type, added.lacks) == (
        source,
        "tool",
        ("acme-core-that-nobody-has>=1",),
    )
    assert load_settings(dirs).values == {
        "modules": {"tools": [{"module": "tool-acme", "source": source}]}
    }
    assert trace_module("tool-acme", resolver=resolver_of(dirs)).pin is not None
    assert "amplifier_module_tool_acme" not in sys.modules


@pytest.mark.process
def test_adding_it_again_replaces_it(
    dirs: AppDirs, repository: Path, tmp_path: Path
) -> None:
    for name, text in TOOL_FILES.items():
        write(tmp_path / "tool" / name, text)
    write(
        dirs.home / "settings.yaml",
        "modules: {tools: [{module: tool-a}, {module: tool-acme, id: other}]}\n",
    )
    for source in (f"git+file://{repository}", str(tmp_path / "tool")):
        add(dirs, "tool-acme", source)

    assert load_settings(dirs).values["modules"] == {
        "tools": [
            {"module": "tool-a"},
            {"module": "tool-acme", "id": "other"},
            {"module": "tool-acme", "source": str(tmp_path / "tool")},
        ]
    }


def test_a_project_names_its_own_folders_by_relative_paths(dirs: AppDirs) -> None:
    for name, text in TOOL_FILES.items():
        write(dirs.root / "tools/acme" / name, text)
    add(dirs, "tool-acme", "tools/acme", scope="project")

    assert (
        "source: ./tools/acme" in (dirs.root / ".amplifier/settings.yaml").read_text()
    )
    assert trace_module("tool-acme", resolver=resolver_of(dirs)).used is not None


def test_what_a_session_has_once_gets_a_source_alone(
    dirs: AppDirs, install_module: InstallModule
) -> None:
    write(
        dirs.root / "x/pyproject.toml",
        '[project.entry-points."amplifier.modules"]\nmy-loop = "x"\n',
    )
    add(dirs, "my-loop", "./x", kind="orchestrator", scope="local")

    assert load_settings(dirs).values == {"sources": {"my-loop": "./x"}}
    install_module("acme", "loop-acme", "acme")
    with pytest.raises(ConfigError, match="give --source"):
        add(dirs, "loop-acme")


def test_all_that_are_added_and_removed_at_once_are(dirs: AppDirs) -> None:
    names = [f"tool-m{number}" for number in range(6)]
    for name in names:
        write(dirs.root / name / "__init__.py", "")
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(lambda name: add(dirs, name, f"./{name}"), names))
    added = load_settings(dirs).read().modules.tools
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda name: remove_module(name, dirs), names[:3]))

    assert sorted(entry.module for entry in added) == names
    assert (
        sorted(entry.module for entry in load_settings(dirs).read().modules.tools)
        == names[3:]
    )


def test_a_path_with_dollar_signs_stands_for_itself(dirs: AppDirs) -> None:
    for name in ("a$$b", "${HOME}", "$x$"):
        write(dirs.root / name / "__init__.py", "")
        add(dirs, "tool-x", f"./{name}")
        used = trace_module("tool-x", resolver=resolver_of(dirs)).used
        assert used is not None
        assert str(used.location) == str(dirs.root / name)


def test_another_source_leaves_the_configuration_of_a_module(dirs: AppDirs) -> None:
    write(dirs.root / "x/__init__.py", "")
    write(
        dirs.home / "settings.yaml",
        "modules: {tools: [{module: tool-x, config: {a: 1}}]}\n",
    )
    add(dirs, "tool-x", "./x")

    entry = {"module": "tool-x", "config": {"a": 1}, "source": str(dirs.root / "x")}
    assert load_settings(dirs).values == {"modules": {"tools": [entry]}}


def test_an_id_that_suggests_no_type_needs_one(dirs: AppDirs) -> None:
    with pytest.raises(ConfigError, match="give --type"):
        add(dirs, "strange", "./x")


@pytest.mark.process
def test_source_without_module_is_refused_and_nothing_changes(
    dirs: AppDirs, repository: Path
) -> None:
    (repository / "amplifier_module_tool_acme.py").rename(repository / "acme.py")
    commit(repository, {"pyproject.toml": ""})

    with pytest.raises(ModuleNotFoundError):
        add(dirs, "tool-acme", f"git+file://{repository}")
    assert load_settings(dirs).values == {}
    assert SourceCache.of(dirs).pins.all() == []


def test_a_module_is_taken_out_of_every_scope(dirs: AppDirs) -> None:
    write(
        dirs.home / "settings.yaml",
        "modules: {tools: [{module: tool-acme}, {module: tool-b}]}\n",
    )
    write(
        dirs.root / ".amplifier/settings.yaml",
        "sources: {tool-acme: ./x, tool-b: ./b}\n",
    )
    trust(dirs, "settings")
    removed = remove_module("tool-acme", dirs)

    assert [key for _, key in removed] == [
        ("sources", "tool-acme"),
        ("modules", "tools", 0),
    ]
    assert load_settings(dirs).values == {
        "modules": {"tools": [{"module": "tool-b"}]},
        "sources": {"tool-b": "./b"},
    }
    for scope, match in ((None, "no settings name it"), ("user", "scope 'user'")):
        with pytest.raises(ConfigError, match=match):
            remove_module("tool-acme", dirs, scope)


@pytest.mark.process
def test_sources_are_brought_up_to_date(dirs: AppDirs, repository: Path) -> None:
    source = f"git+file://{repository}@main"
    first = add(dirs, "tool-acme", source).commit
    second = commit(repository, {"README.md": "two"})
    resolver = resolver_of(dirs)
    (change,) = refresh_modules(resolver).changes
    assert (change.source, change.is_changed) == (source, True)
    assert change.before is not None
    assert (change.before.commit, change.after.commit) == (first, second)
    assert change.before.hash != change.after.hash
    (pinned,) = refresh_modules(resolver, ["tool-acme"]).pin(
        lambda found: [each.source for each in found] == [source]
    )
    assert pinned.after.commit == second
    assert not refresh_modules(resolver).changes[0].is_changed
    with pytest.raises(ConfigError, match="no layer names a source"):
        refresh_modules(resolver, ["tool-gone"])


@pytest.mark.process
def test_nothing_is_pinned_anew_without_consent(
    dirs: AppDirs, repository: Path
) -> None:
    source = f"git+file://{repository}@main"
    first = add(dirs, "tool-acme", source).commit
    commit(repository, {"README.md": "two"})
    resolver = resolver_of(dirs)
    with pytest.raises(AmplifierError, match="nothing was changed"):
        refresh_modules(resolver).pin(lambda _: False)

    pin = resolver.cache.pins.find(source)
    assert pin is not None
    assert pin.commit == first
    assert not (resolver.resolve("tool-acme").resolve() / "README.md").exists()


@pytest.mark.process
def test_module_of_profile_or_bundle_is_brought_up_to_date(
    dirs: AppDirs, repository: Path
) -> None:
    source = f"git+file://{repository}@main"
    write(
        dirs.home / "bundles/acme.yaml",
        f"tools: [{{module: tool-acme, source: '{source}'}}]\n",
    )
    write(dirs.home / "settings.yaml", "bundle: {active: acme}\n")

    (change,) = refresh_modules(resolver_of(dirs), ["tool-acme"]).changes

    assert (change.source, change.before) == (source, None)


@pytest.mark.process
def test_a_folder_is_not_pinned(dirs: AppDirs, repository: Path) -> None:
    add(dirs, "tool-acme", str(repository))

    with pytest.raises(ConfigError, match="nothing is pinned"):
        refresh_modules(resolver_of(dirs), ["tool-acme"])
    write(
        dirs.home / "modules.lock",
        '{"version": 1, "sources": {"./x": {"source": "./x", "hash": "h"}}}',
    )
    with pytest.raises(ConfigError, match="no source that is pinned"):
        refresh_modules(resolver_of(dirs))


# -- packages

UV = """#!/bin/sh
echo "$@" > "{reported}"
ls -A >> "{reported}"
[ -n "{code}" ] && echo "no such package" >&2 && exit {code}
mkdir -p "{site}/acme_pkg-1.5.dist-info"
cd "{site}/acme_pkg-1.5.dist-info"
printf 'Metadata-Version: 2.1\\nName: acme-pkg\\nVersion: 1.5\\n' > METADATA
printf '[amplifier.modules]\\ntool-packed = acme_pkg\\n' > entry_points.txt
printf 'acme_pkg.py,sha256=x,1\\n__pycache__/acme_pkg.pyc,,\\n' > RECORD
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path into which packages are installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def uv(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Return a function that puts an installer on the path that ends with a code; it tells its arguments to a file."""

    def put(code: str = "") -> Path:
        reported = tmp_path / "told"
        write(
            tmp_path / "bin/uv", UV.format(reported=reported, site=site, code=code)
        ).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        return reported

    return put


@pytest.mark.process
def test_a_package_is_installed_once_somebody_agreed(
    dirs: AppDirs, uv: Callable[[str], Path], site: Path
) -> None:
    reported = uv("")
    with pytest.raises(
        AmplifierError, match="was not installed, and nothing was changed"
    ):
        add(dirs, "tool-packed", "acme-pkg>=1")
    assert not reported.exists()

    added = add(dirs, "tool-packed", "acme-pkg>=1", agreed=True)

    assert (
        reported.read_text()
        == f"pip install --python {sys.executable} -- acme-pkg>=1\n"
    )
    assert (added.source, added.commit) == ("acme-pkg>=1", None)
    pin = trace_module("tool-packed", resolver=resolver_of(dirs)).pin
    assert pin is not None
    assert pin.version == "1.5"
    assert resolver_of(dirs).resolve("tool-packed").resolve() == site
    assert add(dirs, "tool-packed").source is None


@pytest.mark.process
def test_package_that_changed_refused_until_it_pinned_anew(
    dirs: AppDirs, uv: Callable[[str], Path], site: Path
) -> None:
    uv("")
    add(dirs, "tool-packed", "acme-pkg", agreed=True)
    record = site / "acme_pkg-1.5.dist-info/RECORD"
    record.write_text("acme_pkg.py,sha256=x,1\n")
    resolver = resolver_of(dirs)
    resolver.resolve("tool-packed").resolve()
    record.write_text("acme_pkg.py,sha256=y,1\n")
    with pytest.raises(ModuleNotFoundError, match="not as it was pinned"):
        resolver.resolve("tool-packed").resolve()

    (dirs.working_dir / "acme-pkg").mkdir()  # a folder of the name is another source
    (change,) = refresh_modules(resolver).pin()
    assert change.is_changed
    assert change.after.version == "1.5"
    resolver.resolve("tool-packed").resolve()


def test_a_package_that_is_not_installed_names_the_command(dirs: AppDirs) -> None:
    write(dirs.home / "settings.yaml", "sources: {tool-x: 'acme-nowhere>=2'}\n")
    resolver = resolver_of(dirs)

    with pytest.raises(
        ModuleNotFoundError,
        match=r"amplifier module add tool-x --source 'acme-nowhere>=2'",
    ):
        resolver.resolve("tool-x").resolve()
    with pytest.raises(ConfigError, match="is not installed"):
        refresh_modules(resolver, ["tool-x"])


def test_an_installed_version_that_will_not_do_is_not_used() -> None:
    assert look_at_package(PackageLocation(requirement="attrs<1")) is None


@pytest.mark.process
def test_what_the_installer_says_is_told(
    dirs: AppDirs, uv: Callable[[str], Path]
) -> None:
    uv("3")
    with pytest.raises(SourceFetchError, match="uv ended with 3: no such package"):
        add(dirs, "tool-packed", "acme-pkg", agreed=True)
    with pytest.raises(SourceFetchError, match="working offline"):
        add(dirs, "tool-packed", "acme-pkg", agreed=True, offline=True)
    assert load_settings(dirs).values == {}


@pytest.mark.process
def test_a_slow_installer_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installers, "_TIMEOUT", 0.3)
    slow = write(tmp_path / "slow", "#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)

    with pytest.raises(SourceFetchError, match=r"longer than 0\.3 s"):
        Installer(name="slow", argv=(str(slow),)).install(
            PackageLocation(requirement="x")
        )


@pytest.mark.process
def test_a_distribution_of_its_own_is_installed_from_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noting = write(tmp_path / "noting", f'#!/bin/sh\necho "$@" > {tmp_path}/given\n')
    noting.chmod(0o755)
    installer = Installer(name="noting", argv=(str(noting), "install"))
    installer.install_own("amplifier-module-tool-web")
    text = (tmp_path / "given").read_text()
    assert text.startswith("install -e ")
    assert text.endswith("/plugins/amplifier-module-tool-web\n")
    monkeypatch.setenv("AMPLIFIER_OFFLINE", "1")
    with pytest.raises(SourceFetchError, match="working offline"):
        installer.install_own("amplifier-module-tool-web")


def test_pip_is_used_where_there_is_no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_installer({"PATH": "/nowhere"})
    assert found.name == "pip"
    assert found.command(PackageLocation(requirement="x"))[-2:] == ("--", "x")
    monkeypatch.setattr(installers, "find_spec", lambda _: None)
    with pytest.raises(SourceFetchError, match="neither uv nor pip"):
        find_installer({"PATH": "/nowhere"})


def test_a_module_without_a_source_has_to_be_installed(dirs: AppDirs) -> None:
    with pytest.raises(ConfigError, match="give its --source"):
        add(dirs, "tool-nowhere")
