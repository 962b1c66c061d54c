"""What `web_fetch` saves, and where."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_web import Web, WebConfig
from amplifier_sdk.errors import ConfigError, ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount: TypeAlias = Callable[[Mapping[str, JSONValue]], Web]


class Site(Protocol):
    requests: list[str]

    def page(
        self,
        path: str,
        body: bytes | str,
        kind: str | None = ...,
        status: str = ...,
        **headers: str,
    ) -> str: ...


async def test_a_file_is_saved_byte_for_byte(
    site: Site, web: Web, coordinator: ModuleCoordinator, tmp_path: Path
) -> None:
    heard: list[object] = []
    coordinator.hooks.register(
        "artifact:write", lambda _, data: heard.append((data["path"], data["bytes"]))
    )
    data = bytes(range(256))
    url = site.page("/a", data, "application/pdf; x=1")

    result = await web.web_fetch(url, save_to_file="papers/new/a.pdf")

    path = str(tmp_path.resolve() / "papers/new/a.pdf")
    assert Path(path).read_bytes() == data
    assert result == {
        "url": url,
        "saved_to": path,
        "bytes": 256,
        "content_type": "application/pdf",
        "trust": "untrusted",
    }
    assert heard == [(path, 256)]


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "/etc/cron.d/x",
        "~/.ssh/authorized_keys",
        ".git/hooks/pre-commit",
        "link/x",
        "dir/",
        "",
    ],
)
async def test_nothing_is_fetched_for_a_path_that_may_not_be_written(
    site: Site, web: Web, tmp_path: Path, path: str
) -> None:
    (tmp_path / "link").symlink_to("/tmp")  # any directory outside

    with pytest.raises(ToolError):
        await web.web_fetch(site.page("/a", "x", "text/plain"), save_to_file=path)
    assert site.requests == []


async def test_a_file_that_exists_is_kept(site: Site, web: Web, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("mine")

    with pytest.raises(ToolError, match="give a new name"):
        await web.web_fetch(site.page("/a", "x", "text/plain"), save_to_file="main.py")
    assert (tmp_path / "main.py").read_text() == "mine"


async def test_of_pages_that_are_saved_under_one_name_at_once_one_is(
    site: Site, web: Web, tmp_path: Path
) -> None:
    saved: list[object] = []
    pages = {
        site.page(f"/{number}", str(number), "text/plain"): str(number)
        for number in range(4)
    }

    async def save(url: str) -> None:
        with suppress(ToolError):
            saved.append((await web.web_fetch(url, save_to_file="a"))["url"])

    async with anyio.create_task_group() as group:
        for url in pages:
            group.start_soon(save, url)

    assert [pages[str(url)] for url in saved] == [(tmp_path / "a").read_text()]


async def test_a_file_that_is_there_is_told_of_without_a_deadline(
    site: Site, web: Web, coordinator: ModuleCoordinator
) -> None:
    """Its call would otherwise fail, and the next one find the name taken."""
    deadlines: list[float] = []

    async def hear(event: str, data: dict[str, object]) -> None:
        deadlines.append(anyio.current_effective_deadline())

    coordinator.hooks.register("artifact:write", hear)
    before = anyio.current_effective_deadline()

    await web.web_fetch(site.page("/a", "x", "text/plain"), save_to_file="a")

    assert deadlines == [before]


@pytest.mark.process
async def test_nothing_is_saved_of_a_failure_or_of_a_part(
    site: Site, mount: Mount, tmp_path: Path
) -> None:
    web = mount({"max_bytes": 10})
    with pytest.raises(ToolError, match="status 404"):
        await web.web_fetch(
            site.page("/a", "x", status="404 Not Found"), save_to_file="a"
        )
    with pytest.raises(ToolError, match="longer than 10 bytes"):
        await web.web_fetch(site.page("/a", "x" * 11), save_to_file="a")
    with pytest.raises(ToolError, match="ended too early"):
        await web.web_fetch(
            site.page("/a", b"\x1f\x8b\x08\0", Content_Encoding="gzip"),
            save_to_file="a",
        )
    assert list(tmp_path.iterdir()) == []


async def test_where_files_are_saved_is_configured(
    site: Site, mount: Mount, tmp_path: Path
) -> None:
    for name in ("work", "out"):
        (tmp_path / name).mkdir()
    web = mount(
        {
            "working_dir": "work",
            "allowed_write_paths": ["../out"],
            "denied_write_paths": ["no", "../out/b/c"],
        }
    )
    url = site.page("/a", "x", "text/plain")

    await web.web_fetch(url, save_to_file="../out/a")
    await web.web_fetch(url, save_to_file=str(tmp_path / "out/.git/b"))
    for path in ("a", "../out/no/a", "../out/b/c/d"):
        with pytest.raises(ToolError):
            await web.web_fetch(url, save_to_file=path)
    assert (tmp_path / "out/a").read_text() == "x"


def test_directories_that_do_not_exist_are_all_named(mount: Mount) -> None:
    with pytest.raises(ConfigError) as caught:
        mount({"working_dir": "nowhere", "allowed_write_paths": ["."]})

    assert [problem.path for problem in caught.value.problems] == [
        "working_dir",
        "allowed_write_paths[0]",
    ]


async def test_without_capability_paths_start_at_process_directory(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    web = Web(WebConfig(allowed_addresses=("127.0.0.1",)), ModuleCoordinator())

    await web.web_fetch(site.page("/a", "x", "text/plain"), save_to_file="a")
    assert (tmp_path / "a").read_text() == "x"


async def test_where_paths_cannot_be_confined_pages_are_only_read(
    site: Site, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", frozenset())
    url = site.page("/a", "x", "text/plain")

    await web.web_fetch(url)
    with pytest.raises(ToolError, match="files cannot be saved here"):
        await web.web_fetch(url, save_to_file="a")
