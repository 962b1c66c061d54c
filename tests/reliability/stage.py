"""Sessions of the real modules in folders of a test, for the tables that reach across modules."""

from __future__ import annotations

import http.server
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

import attrs

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import ScriptedProvider, mounting
from amplifier_kit.scripted import Step
from amplifier_sdk.jsontypes import JSONObject
from tests.doubles import Person

__all__ = ["HOOKS", "TOOLS", "AppDirs", "Site", "files_below", "session", "site"]

TOOLS: Final = (
    "tool-bash",
    "tool-filesystem",
    "tool-web",
    "tool-todo",
    "tool-skills",
    "tool-mcp",
    "tool-task",
)
HOOKS: Final = (
    "hooks-redaction",
    "hooks-logging",
    "hooks-approval",
    "hooks-todo-reminder",
    "hooks-status-context",
    "hooks-backup",
    "hooks-shell",
)
"""Every acting module; each is one row of the tables."""


@attrs.frozen(kw_only=True)
class AppDirs:
    """The folders of a test: the person's, the one for short-lived files, and the project."""

    home: Path
    temporary: Path
    project: Path

    @property
    def roots(self) -> tuple[Path, Path, Path]:
        return self.home, self.temporary, self.project


@attrs.frozen(eq=False)
class Site:
    """A web site on this machine; a page without a type is plain text."""

    port: int
    pages: dict[str, bytes]
    types: dict[str, str]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def site() -> Iterator[Site]:
    """Serve pages until the block ends."""
    pages: dict[str, bytes] = {}
    types: dict[str, str] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header(
                "Content-Type", types.get(self.path, "text/plain; charset=utf-8")
            )
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Site(server.server_address[1], pages, types)
        finally:
            server.shutdown()
            thread.join()


def session(
    dirs: AppDirs,
    *steps: Step,
    tools: Sequence[str] = TOOLS,
    hooks: Sequence[str] = HOOKS,
    configs: Mapping[str, JSONObject] | None = None,
    extra_tools: Sequence[object] = (),
    extra_hooks: Sequence[object] = (),
    reply: str | Exception = "Allow once",
    session_id: str = "table",
    provider: ScriptedProvider | None = None,
    settings: JSONObject | None = None,
    agents: JSONObject | None = None,
) -> AmplifierSession:
    """Make a session of real modules with a scripted provider and a person who gives one answer."""
    names = ("loop-basic", "context-persistent", *tools, *hooks)
    modules: dict[str, object] = {name: _target(name) for name in names}
    modules["provider"] = mounting(provider or ScriptedProvider(*steps))
    modules |= {f"tool-{index}": tool for index, tool in enumerate(extra_tools)}
    modules |= {f"hook-{index}": hook for index, hook in enumerate(extra_hooks)}
    reported = configs or {}
    plan: dict[str, object] = {
        "session": {
            "orchestrator": {
                "module": "loop-basic",
                "config": reported.get("loop-basic", {}),
            },
            "context": {
                "module": "context-persistent",
                "config": reported.get("context-persistent", {}),
            },
            **(settings or {}),
        },
        "providers": ["provider"],
        "agents": agents or {},
        "tools": [
            _entry(name, reported)
            for name in (*tools, *(f"tool-{i}" for i in range(len(extra_tools))))
        ],
        "hooks": [
            _entry(name, reported)
            for name in (*hooks, *(f"hook-{i}" for i in range(len(extra_hooks))))
        ],
    }
    made = AmplifierSession(
        plan,
        ModuleLoader(modules=modules, search_paths=[], path=[]),
        session_id,
        approval_system=Person(reply),
    )
    made.coordinator.register_capability("session.working_dir", str(dirs.project))
    made.coordinator.register_capability("session.dir", str(dirs.home / ".amplifier"))
    return made


def files_below(*roots: Path) -> Iterator[Path]:
    """Yield every file that stands below some folders."""
    for root in roots:
        yield from (
            path for path in root.rglob("*") if path.is_file() and not path.is_symlink()
        )


def _entry(name: str, configs: Mapping[str, JSONObject]) -> dict[str, object]:
    return {"module": name, "config": configs.get(name, {})}


def _target(name: str) -> object:
    """Return what a module's entry point names, whether it is installed or not."""
    file = (
        Path(__file__).parents[2]
        / "plugins"
        / f"amplifier-module-{name}"
        / "pyproject.toml"
    )
    entry: str = tomllib.loads(file.read_text("utf-8"))["project"]["entry-points"][
        "amplifier.modules"
    ][name]
    package, _, attribute = entry.partition(":")
    module = import_module(package)
    return getattr(module, attribute) if attribute else module
