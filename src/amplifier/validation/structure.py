"""What can be said about a package without running it: its metadata, names and files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from amplifier.kernel.modules.sources import GROUP
from amplifier.validation.checks import CHECKS
from amplifier.validation.packages import (
    Package,
    PackagedModule,
    repositories_below,
    table,
)
from amplifier.validation.report import CheckResult
from amplifier_kit.open_data import as_list
from amplifier_sdk.hookspecs import KINDS

__all__ = ["check_module_files", "check_package"]

_ID: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def check_package(package: Package) -> list[CheckResult]:
    """Check what concerns the package itself."""
    results = [*_check_metadata(package), _check_entry_points(package)]
    # without a module there is nothing that the rest could be about
    if package.candidates:
        return [*results, _check_requires(package), *_check_files(package)]
    return results


def check_module_files(
    package: Package, candidate: PackagedModule
) -> list[CheckResult]:
    """Check a module's names and files."""
    results = [_check_id(package, candidate), _check_layout(package, candidate)]
    if package.name is not None and len(package.candidates) == 1:
        results.append(_check_names(package.name, candidate))
    if candidate.location is not None and candidate.location.is_dir():
        results.append(_check_typed(package, candidate.location))
    return results


def _check_metadata(package: Package) -> Iterator[CheckResult]:
    if package.root is None:
        return
    check, build = CHECKS["package.metadata"], CHECKS["package.build-system"]
    place = package.place
    if package.problem is not None:
        yield check.error(f"The metadata is missing: {package.problem}", place=place)
        return
    project = package.project
    missing = [key for key in ("name", "version") if key not in project]
    # the build backend will fill it in
    if "version" in as_list(project.get("dynamic")):
        missing = [key for key in missing if key != "version"]
    if missing:
        yield check.error(f"[project] lacks {' and '.join(missing)}.", place=place)
    elif "requires-python" not in project:
        # No standard asks for it, but without it installers offer the module to every Python.
        yield check.warning("[project] lacks requires-python.", place=place)
    else:
        yield check.passed()
    if isinstance(table(package.metadata, "build-system").get("build-backend"), str):
        yield build.passed()
    else:
        yield build.warning(
            "pyproject.toml names no build backend; installers assume setuptools.",
            place=place,
        )


def _check_entry_points(package: Package) -> CheckResult:
    check = CHECKS["package.entry-points"]
    if package.root is None or table(package.project, "entry-points", GROUP):
        return check.passed(
            f"The distribution offers {', '.join(candidate.id for candidate in package.candidates)}."
        )
    place = package.place
    below = [
        str(folder.relative_to(package.root))
        for folder in repositories_below(package.root)
    ]
    if below:
        fix = f"Validate one of the packages below it: {', '.join(below)}."
        return check.error(
            f"There is no entry point in the group {GROUP}.", fix=fix, place=place
        )
    return check.error(
        f"There is no entry point in the group {GROUP}: nobody finds the module.",
        place=place,
    )


def _check_requires(package: Package) -> CheckResult:
    check = CHECKS["package.requires-amplifier"]
    names = [
        match[0].lower()
        for text in package.requires
        if (match := _NAME.match(text.strip()))
    ]
    if "amplifier" in names:
        return check.passed()
    return check.warning(
        "The distribution does not require amplifier.", place=package.place
    )


def _check_files(package: Package) -> Iterator[CheckResult]:
    if package.root is None:
        return
    readme, tests = CHECKS["package.readme"], CHECKS["package.tests"]
    named = package.project.get("readme")
    if isinstance(named, dict):
        file = named.get("file")
    else:
        file = named
    if not isinstance(file, str):
        yield readme.warning(
            "The metadata names no README, so the package's page would be empty."
        )
    elif not (package.root / file).is_file():
        yield readme.error(
            f"The metadata names {file!r}, which is not there: the package cannot be built."
        )
    else:
        yield readme.passed()
    folders = (package.root / "tests", package.root / "test")
    if any(True for folder in folders for _ in folder.rglob("test_*.py")):
        yield tests.passed()
    else:
        yield tests.warning("There is no tests/test_*.py.")


def _check_id(package: Package, candidate: PackagedModule) -> CheckResult:
    check = CHECKS["module.id"]
    place = package.place
    if not _ID.fullmatch(candidate.id):
        return check.error(
            f"The id {candidate.id!r} is not lower-case words with hyphens.",
            place=place,
        )
    # only a warning below: an application may have types of its own
    prefixes = [prefix for kind in KINDS for prefix in kind.prefixes]
    if not candidate.id.startswith(tuple(prefixes)):
        return check.warning(
            f"The id {candidate.id!r} begins with no type ({', '.join(prefixes)}).",
            place=place,
        )
    return check.passed()


def _check_layout(package: Package, candidate: PackagedModule) -> CheckResult:
    check = CHECKS["module.layout"]
    if candidate.location is not None:
        return check.passed(
            f"The package {candidate.package} is at {package.shown(candidate.location)}."
        )
    if package.root is not None:
        where = "src/ or the root of the repository"
    else:
        where = "sys.path"
    return check.error(
        f"The entry point names {candidate.target!r}, but there is no package {candidate.package!r} in {where}."
    )


def _check_names(distribution: str, candidate: PackagedModule) -> CheckResult:
    check = CHECKS["module.names"]
    wanted, top = (
        f"amplifier-module-{candidate.id}",
        f"amplifier_module_{candidate.id.replace('-', '_')}",
    )
    wrong = []
    # as package indexes compare names
    if re.sub(r"[-_.]+", "-", distribution).lower() != wanted:
        wrong.append(f"the distribution is called {distribution!r}, not {wanted!r}")
    if candidate.package != top:
        wrong.append(f"the package is called {candidate.package!r}, not {top!r}")
    if wrong:
        return check.warning(f"For the module {candidate.id!r} {' and '.join(wrong)}.")
    return check.passed()


def _check_typed(package: Package, folder: Path) -> CheckResult:
    check = CHECKS["module.typed"]
    if (folder / "py.typed").is_file():
        return check.passed()
    return check.warning(
        "The package has no py.typed: type checkers ignore its types.",
        place=package.shown(folder),
    )
