"""What is committed works anywhere: nothing names a registry, and workflows do only what they say.

`nox -s repository` checks the workflows and forms against their schemas; these rules hold without any tool.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.architecture.source_tree import PLUGINS, ROOT

LOCK_FILES: Final = frozenset(
    {
        "Pipfile.lock",
        "package-lock.json",
        "pdm.lock",
        "poetry.lock",
        "pylock.toml",
        "uv.lock",
    }
)
REGISTRIES: Final = tuple(
    ".".join(parts).encode()  # joined here, or this file would name them
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("debian", "org"),
    )
)
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS: Final = sorted((ROOT / ".github").rglob("*.yml"))
PAGES: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "CHANGELOG.md",
)


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [
        path for name in listed.split("\0") if name and (path := ROOT / name).is_file()
    ]


@pytest.mark.process
def test_no_lock_file_is_committed() -> None:
    assert [path for path in _tracked() if path.name in LOCK_FILES] == []


@pytest.mark.process
def test_no_file_names_a_registry() -> None:
    naming = [
        f"{path.relative_to(ROOT)}: {host.decode()}"
        for path in _tracked()
        for host in REGISTRIES
        if host in path.read_bytes()
    ]

    assert naming == []


def _missing_of(plugin: Path) -> list[str]:
    wanted = (
        f"src/{plugin.name.replace('-', '_')}/py.typed",
        "README.md",
        "tests/test_*.py",
    )
    return [
        f"{plugin.name}/{pattern}"
        for pattern in wanted
        if not any(plugin.glob(pattern))
    ]


def test_plugins_are_typed_described_and_tested() -> None:
    assert [missing for plugin in PLUGINS for missing in _missing_of(plugin)] == []


def test_every_change_fragment_has_a_name_and_a_type() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
        "towncrier"
    ]
    kinds = [kind["directory"] for kind in settings["type"]]
    named = re.compile(rf"\+[a-z0-9-]+\.({'|'.join(kinds)})\.md|README\.md")

    assert [
        path.name
        for path in (ROOT / "changes").iterdir()
        if not named.fullmatch(path.name)
    ] == []


def test_every_action_is_pinned_by_commit_and_names_version() -> None:
    used = [
        line.strip()
        for path in ACTIONS
        for line in path.read_text("utf-8").splitlines()
        if "uses:" in line
    ]
    pinned = re.compile(
        r"(- )?uses: (\./\.github/\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)"
    )

    assert used
    assert [line for line in used if not pinned.fullmatch(line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_few_rights_and_ends(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))

    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 360
        assert "permissions" in job
        assert job["permissions"].get("contents", "read") == "read"


def _sessions() -> Iterator[str]:
    """Yield the nox sessions that a workflow or CONTRIBUTING.md runs."""
    for path in (*WORKFLOWS, ROOT / "CONTRIBUTING.md"):
        for words in re.findall(
            r"\bnox [-\w ]*?-s ([^`\n]+?)(?: -- |`|\n)", path.read_text("utf-8")
        ):
            yield from re.findall(r"[a-z_]+", re.sub(r"-\$\w+|\([^)]*\)", "", words))


def test_every_nox_session_that_is_named_exists() -> None:
    source = (ROOT / "noxfile.py").read_text("utf-8")
    defined = set(
        re.findall(r"@nox\.session.*?^def (\w+)\(", source, re.DOTALL | re.MULTILINE)
    )
    named = set(_sessions())

    assert {"lint", "tests", "docs", "nightly", "release"} <= named
    assert named - defined == set()


def _anchors(page: Path) -> set[str]:
    """Return the names that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.parametrize("name", PAGES)
def test_what_a_root_page_links_to_exists(name: str) -> None:
    links = re.findall(
        r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)", (ROOT / name).read_text("utf-8")
    )

    assert [path for path, _ in links if not (ROOT / path).exists()] == []
    assert [
        f"{path}#{anchor}"
        for path, anchor in links
        if anchor and anchor not in _anchors(ROOT / path)
    ] == []
