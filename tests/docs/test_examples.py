"""Every example of the documentation works as it stands on its page."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Awaitable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

import anyio
import pytest

from amplifier.testing.postgres import (
    PASSWORD,
    PostgresServer,
    find_programs,
    running_server,
)
from tests.docs.pages import Block, Page, read_page

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = tuple(
    read_page(path)
    for path in (*ROOT.glob("README.md"), *sorted((ROOT / "docs").rglob("*.md")))
)


def _parameters() -> list[object]:
    return [
        pytest.param(
            page,
            backend,
            id=f"{page.path.relative_to(ROOT)}-{backend}",
            marks=[pytest.mark.model] if page.needs_model else [],
        )
        for page in PAGES
        if any(block.kind == "code" for block in page.blocks)
        for backend in _backends(page)
    ]


def _backends(page: Page) -> tuple[str, ...]:
    is_async = any(
        block.kind == "code" and _is_async(_compile(block, page))
        for block in page.blocks
    )
    return ("asyncio", "trio") if is_async else ("asyncio",)


def _compile(block: Block, page: Page) -> CodeType:
    # so that a traceback shows the page's own lines
    source = "\n" * (block.line - 1) + block.text
    code: CodeType = compile(
        source, str(page.path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    return code


def _is_async(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_COROUTINE)


def _run(code: CodeType, names: dict[str, object], backend: str) -> None:
    if not _is_async(code):
        exec(code, names)
        return

    async def main() -> None:
        pending: Awaitable[object] = eval(code, names)
        await pending

    anyio.run(main, backend=backend)


@pytest.fixture(autouse=True)
def forget_what_a_page_wrote(tmp_path: Path) -> Iterator[None]:
    """A page may write a package and have it imported; the next page's, of the same name, is another one."""
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.timeout(300)
@pytest.mark.process
@pytest.mark.parametrize(("page", "backend"), _parameters())
def test_the_examples_of_a_page_run_from_top_to_bottom(
    page: Page,
    backend: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    # a page may share a name with its child processes; other tests have others
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    with ExitStack() as stack:
        if page.needs_server:
            vars(module)["url"] = stack.enter_context(_server()).url()
        for block in page.blocks:
            if block.kind == "code":
                _run(_compile(block, page), vars(module), backend)
            else:
                said = capsys.readouterr().out
                assert said == block.text, f"{page.path}:{block.line}"


def _server() -> AbstractContextManager[PostgresServer]:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    return running_server(programs)


PUBLIC: Final = (
    "amplifier",
    "amplifier.compat",
    "amplifier.serving",
    "amplifier.testing",
    "amplifier.validation",
    "amplifier_sdk",
    "amplifier_kit",
)
"""The packages that an application or a module imports from; of the SDK and the kit, any part that is not private."""


def test_examples_import_what_is_public() -> None:
    wrong = [
        f"{page.path.name}: {name}"
        for page in PAGES
        for name in _imported(page)
        if not _is_public(name)
    ]

    assert wrong == []


def _imported(page: Page) -> Iterator[str]:
    for block in page.blocks:
        if block.kind == "code":
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module
                elif isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)


def _is_public(module: str) -> bool:
    if module.partition(".")[0] in ("amplifier_sdk", "amplifier_kit"):
        return "._" not in module
    return (
        module.partition(".")[0] != "amplifier"
        or module in PUBLIC
        or module.startswith(("amplifier.testing.", "amplifier.validation."))
    )
