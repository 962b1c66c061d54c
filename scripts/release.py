"""What a release needs to know: one version for all distributions, and the order in which their wheels are installed.

`python -m scripts.release version [X.Y.Z [--write]]` prints the version that all have, or gives all a new one;
`python -m scripts.release order FOLDER` prints the wheels of a folder, each behind those that it requires.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from email.parser import HeaderParser
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

__all__ = [
    "VersionMismatchError",
    "common_version",
    "install_order",
    "main",
    "projects",
    "write_version",
]

ROOT: Final = Path(__file__).resolve().parents[1]
LINE: Final = re.compile(r'^version = ".*"$', re.MULTILINE)


class VersionMismatchError(Exception):
    """Distributions have versions that differ from the root's."""


def projects(root: Path = ROOT) -> list[Path]:
    """Return the `pyproject.toml` of every distribution, the root's first: its version is the version of all."""
    return [root / "pyproject.toml", *sorted(root.glob("plugins/*/pyproject.toml"))]


def common_version(root: Path = ROOT) -> str:
    """Return the version that all distributions have.

    Raises:
        VersionMismatchError: names those that have another than the root, and what mends them.
    """
    first, *others = projects(root)
    version = _version(first)
    if differing := [
        f"{path.parent.name} ({_version(path)})"
        for path in others
        if _version(path) != version
    ]:
        remedy = f"`python -m scripts.release version {version} --write` gives all one version"
        raise VersionMismatchError(
            f"The root's version is {version}, that of {', '.join(differing)} is not: {remedy}."
        )
    return version


def write_version(version: str, root: Path = ROOT) -> None:
    """Give every distribution a version."""
    for path in projects(root):
        path.write_text(
            LINE.sub(f'version = "{version}"', path.read_text("utf-8"), count=1),
            "utf-8",
        )


def _version(project: Path) -> str:
    version: str = tomllib.loads(project.read_text("utf-8"))["project"]["version"]
    return version


def install_order(folder: Path) -> Iterator[Path]:
    """Yield the wheels of a folder, each behind those of the folder that it requires without an extra."""
    wheels = {}
    graph: TopologicalSorter[str] = TopologicalSorter()
    for path in sorted(folder.glob("*.whl")):
        name, required = _metadata(path)
        wheels[name] = path
        graph.add(name, *required)
    for name in graph.static_order():
        if name in wheels:
            yield wheels[name]


def _metadata(wheel: Path) -> tuple[str, list[str]]:
    with ZipFile(wheel) as archive:
        (name,) = [
            name for name in archive.namelist() if name.endswith(".dist-info/METADATA")
        ]
        headers = HeaderParser().parsestr(archive.read(name).decode())
    requirements = [Requirement(text) for text in headers.get_all("Requires-Dist", [])]
    needed = [
        one
        for one in requirements
        if one.marker is None or one.marker.evaluate({"extra": ""})
    ]
    return canonicalize_name(headers["Name"]), [
        canonicalize_name(one.name) for one in needed
    ]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> None:
    """Do what the arguments ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    version = commands.add_parser("version")
    version.add_argument("version", nargs="?", type=_canonical)
    version.add_argument("--write", action="store_true")
    commands.add_parser("order").add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "order":
        print(*install_order(given.folder), sep="\n")
        return
    if given.write and given.version:
        write_version(given.version, root)
    try:
        found = common_version(root)
    except VersionMismatchError as error:
        sys.exit(str(error))
    if given.version not in (None, found):
        sys.exit(
            f"The version is {found}, not {given.version}: add `--write` to change it."
        )
    print(found)


def _canonical(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no version such as 1.2.3"
        ) from None


if __name__ == "__main__":
    main()
