"""What a path or an id means, and what a project's files say, without running any of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amplifier.validation.packages import find_package
from amplifier.validation.report import CheckResult
from amplifier.validation.structure import check_module_files, check_package
from amplifier_sdk.errors import ModuleConflictError, ModuleNotFoundError
from tests.kernel.packages import install
from tests.validation.projects import write_project

PACKAGE = "amplifier_module_tool_sound"


@pytest.mark.parametrize("path", ["", "pyproject.toml", f"src/{PACKAGE}"])
def test_repository_is_named_by_folder_metadata_or_package(
    tmp_path: Path, path: str
) -> None:
    """Row 49: both the root of a repository and the folder of a package are accepted."""
    project = write_project(tmp_path)

    package = find_package(project / path)

    (candidate,) = package.candidates
    assert package.name == "amplifier-module-tool-sound"
    assert package.root == project
    assert (candidate.id, candidate.target) == ("tool-sound", f"{PACKAGE}:Main")
    assert candidate.location == project / "src" / PACKAGE


@pytest.mark.parametrize("layout", ["python", "flat", "module"])
def test_a_package_may_lie_where_the_build_backend_is_told(
    tmp_path: Path, layout: str
) -> None:
    more = {
        "python": f"\n[tool.hatch.build.targets.wheel]\npackages = ['python/{PACKAGE}']\n",
        "flat": "",
        "module": "\n[tool.setuptools.packages.find]\nwhere = ['lib']\n",
    }[layout]
    project = write_project(tmp_path, more=more)
    home = {
        "python": f"python/{PACKAGE}",
        "flat": PACKAGE,
        "module": f"lib/{PACKAGE}.py",
    }[layout]
    source = project / "src" / PACKAGE
    (project / home).parent.mkdir(exist_ok=True)
    (source / "__init__.py" if layout == "module" else source).rename(project / home)

    (candidate,) = find_package(project).candidates

    assert candidate.location == project / home


def test_a_package_without_metadata_is_a_module_of_its_own(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    (project / "pyproject.toml").unlink()

    package = find_package(project / "src" / PACKAGE)

    assert [(each.id, each.target) for each in package.candidates] == [
        ("tool-sound", PACKAGE)
    ]
    assert _found(check_package(package), "package.metadata").status == "error"


def test_package_that_no_entry_point_names_is_module_of_its_own(
    tmp_path: Path,
) -> None:
    project = write_project(tmp_path, target="somewhere_else:Main")

    (candidate,) = find_package(project / "src" / PACKAGE).candidates

    assert candidate.target == PACKAGE


def test_extras_of_an_entry_point_are_no_part_of_its_target(tmp_path: Path) -> None:
    (candidate,) = find_package(
        write_project(tmp_path, target=f"{PACKAGE}:Main [fast]")
    ).candidates

    assert candidate.target == f"{PACKAGE}:Main"


def test_an_installed_module_is_named_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path,
        "some-dist",
        {"tool-there": "there.tools:Main"},
        {"there/__init__.py": "", "there/tools.py": ""},
    )
    monkeypatch.syspath_prepend(tmp_path)

    package = find_package("tool-there")

    (candidate,) = package.candidates
    assert package.name == "some-dist"
    assert package.root is None
    assert (candidate.id, candidate.target, candidate.package) == (
        "tool-there",
        "there.tools:Main",
        "there",
    )
    assert candidate.location == tmp_path / "there"


def test_installed_module_whose_package_is_gone_has_no_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "some-dist", {"tool-gone": "gone_package:Main"}, {})
    monkeypatch.syspath_prepend(tmp_path)

    package = find_package("tool-gone")

    (candidate,) = package.candidates
    assert candidate.location is None
    assert (
        "sys.path"
        in _found(check_module_files(package, candidate), "module.layout").message
    )


def test_an_id_that_two_distributions_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        install(tmp_path / name, f"{name}-dist", {"tool-twice": f"{name}:Main"}, {})
        monkeypatch.syspath_prepend(tmp_path / name)

    with pytest.raises(
        ModuleConflictError, match=r"one-dist.*two-dist|two-dist.*one-dist"
    ):
        find_package("tool-twice")


def test_what_is_neither_a_folder_nor_an_id_names_what_is_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "some-dist", {"tool-there": "there:Main"}, {})
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="did you mean 'tool-there'"):
        find_package("tool-their")


def test_without_anything_near_the_installed_modules_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])

    with pytest.raises(ModuleNotFoundError, match="installed: none"):
        find_package("tool-xyz")


def test_a_folder_that_is_no_package_names_the_packages_below(tmp_path: Path) -> None:
    write_project(tmp_path / "plugins")
    (tmp_path / "other").mkdir()

    with pytest.raises(
        ModuleNotFoundError, match="plugins/amplifier-module-tool-sound"
    ):
        find_package(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="Name the folder"):
        find_package(tmp_path / "other")


def test_a_workspace_without_modules_names_the_packages_below(tmp_path: Path) -> None:
    write_project(tmp_path / "plugins")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'all'\nversion = '1'\n")

    result = _found(check_package(find_package(tmp_path)), "package.entry-points")

    assert result.status == "error"
    assert "plugins/amplifier-module-tool-sound" in str(result.fix)


def test_an_installed_module_goes_before_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path, "some-dist", {"tool-there": "there:Main"}, {"there/__init__.py": ""}
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path).rename(tmp_path / "tool-there")

    assert find_package("tool-there").name == "some-dist"
    assert find_package("./tool-there").name == "amplifier-module-tool-sound"
    assert find_package(Path("tool-there")).name == "amplifier-module-tool-sound"


def test_a_folder_whose_name_is_no_installed_module_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path).rename(tmp_path / "tool-here")

    assert find_package("tool-here").name == "amplifier-module-tool-sound"


def _found(results: list[CheckResult], check: str) -> CheckResult:
    (result,) = (result for result in results if result.check == check)
    return result


POINTS = f'[project.entry-points."amplifier.modules"]\ntool-sound = "{PACKAGE}:Main"\n'


@pytest.mark.parametrize(
    ("without", "check", "status", "words"),
    [
        (
            'requires-python = ">=3.11"\n',
            "package.metadata",
            "warning",
            "lacks requires-python",
        ),
        (
            'version = "1.0"\nreadme = "README.md"\nrequires-python = ">=3.11"\n',
            "package.metadata",
            "error",
            "version",
        ),
        ("[build-system]", "package.build-system", "warning", "no build backend"),
        (POINTS, "package.entry-points", "error", "nobody finds"),
        (
            'dependencies = ["amplifier"]\n',
            "package.requires-amplifier",
            "warning",
            "does not require",
        ),
        ('readme = "README.md"\n', "package.readme", "warning", "no README"),
    ],
)
def test_what_the_metadata_lacks_is_found(
    tmp_path: Path, without: str, check: str, status: str, words: str
) -> None:
    package = find_package(write_project(tmp_path, without=without))

    results = check_package(package)
    if check == "package.requires-amplifier":
        assert _found(results, "package.entry-points").status == "passed"
    result = _found(results, check)
    assert result.status == status
    assert words in result.message
    assert result.fix


def test_a_version_may_be_dynamic(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    file = project / "pyproject.toml"
    file.write_text(
        file.read_text().replace('version = "1.0"', 'dynamic = ["version"]')
    )

    assert (
        _found(check_package(find_package(project)), "package.metadata").status
        == "passed"
    )


@pytest.mark.parametrize("text", ["[project", "\xff"])
def test_metadata_that_cannot_be_read_says_why(tmp_path: Path, text: str) -> None:
    project = write_project(tmp_path)
    (project / "pyproject.toml").write_bytes(text.encode("latin-1"))

    result = _found(check_package(find_package(project)), "package.metadata")

    assert result.status == "error"
    assert "pyproject.toml cannot be read" in result.message


@pytest.mark.parametrize(
    ("missing", "check", "status"),
    [
        ("README.md", "package.readme", "error"),
        ("tests/test_it.py", "package.tests", "warning"),
        (f"src/{PACKAGE}/py.typed", "module.typed", "warning"),
        (f"src/{PACKAGE}/__init__.py", "module.layout", "error"),
    ],
)
def test_a_file_that_is_missing_is_found(
    tmp_path: Path, missing: str, check: str, status: str
) -> None:
    project = write_project(tmp_path)
    (project / missing).unlink()
    package = find_package(project)

    results = [
        *check_package(package),
        *check_module_files(package, package.candidates[0]),
    ]

    assert _found(results, check).status == status


@pytest.mark.parametrize(
    ("module", "status", "words"),
    [
        ("Tool_Sound", "error", "lower-case"),
        ("sound", "warning", "begins with no type"),
        ("tool-a1", "passed", ""),
    ],
)
def test_an_id_is_words_that_begin_with_the_type(
    tmp_path: Path, module: str, status: str, words: str
) -> None:
    package = find_package(write_project(tmp_path, module, ""))

    result = _found(check_module_files(package, package.candidates[0]), "module.id")

    assert result.status == status
    assert words in result.message


def test_names_that_do_not_agree_are_told(tmp_path: Path) -> None:
    project = write_project(
        tmp_path, target="sound:Main", files={"src/sound/__init__.py": ""}
    )
    file = project / "pyproject.toml"
    file.write_text(
        file.read_text().replace(
            'name = "amplifier-module-tool-sound"', 'name = "sound"'
        )
    )
    package = find_package(project)

    result = _found(check_module_files(package, package.candidates[0]), "module.names")

    assert result.status == "warning"
    assert "the distribution is called 'sound'" in result.message
    assert "the package is called 'sound'" in result.message


def test_a_readme_may_be_named_in_a_table(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    file = project / "pyproject.toml"
    table = 'readme = {file = "README.md", content-type = "text/markdown"}'
    file.write_text(file.read_text().replace('readme = "README.md"', table))

    assert (
        _found(check_package(find_package(project)), "package.readme").status
        == "passed"
    )
