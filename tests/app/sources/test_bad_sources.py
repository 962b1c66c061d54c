"""Sources whose modules are bad: each is named with its cause, and the others load."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from threading import Event
from types import ModuleType
from typing import Final

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.sessions.opened import open_session
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.threads import abandoned
from tests.app.projects import composed, write

GOOD: Final = "from amplifier_sdk import tool\n\n@tool\ndef fine(text: str) -> str:\n    return text\n"
BAD: Final[Mapping[str, tuple[str | bytes, str]]] = {
    "import": ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
    "syntax": ("def (", "SyntaxError"),
    "raises": ("raise RuntimeError('the disk')", "the disk"),
    "exits": ("raise SystemExit(3)", "SystemExit"),
    "hangs": (
        "import gate_of_bad_sources\ngate_of_bad_sources.opened.wait(20)",
        "took longer than",
    ),
    "number": ("mount = 3", "mount"),
    "nothing": ("", "mount"),
    "encoding": (b"x = '\xff'\n", "utf-8"),
    "zero": (b"x = 1\0", "null bytes"),
    "mounting": (
        "async def mount(coordinator, config):\n    raise ValueError('no such key')",
        "no such key",
    ),
    "type": (
        "__amplifier_module_type__ = 'provider'\nasync def mount(coordinator, config):\n    return None",
        "provider",
    ),
}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the module that hangs waits for; its thread is gone afterwards."""
    module = ModuleType("gate_of_bad_sources")
    module.opened = opened = Event()  # type: ignore[attr-defined]  # the module's one name
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield
    opened.set()
    for _ in range(2000):  # a command of the next test would end the process beside it
        if not abandoned():
            break
        Event().wait(0.005)


@pytest.fixture
def plan(dirs: AppDirs, gate: None) -> Iterator[JSONObject]:
    """A plan with bad modules, and good ones before and after them."""
    folders = {}
    for name, (code, _) in BAD.items():
        folders[f"tool-b-{name}"] = folder = dirs.working_dir / f"b-{name}"
        folder.mkdir()
        data = code if isinstance(code, bytes) else code.encode()
        (folder / f"amplifier_module_tool_b_{name}.py").write_bytes(data)
    for name in ("first", "last"):
        folders[f"tool-b-{name}"] = dirs.working_dir / name
        text = GOOD.replace("fine", name)
        write(dirs.working_dir / name / f"amplifier_module_tool_b_{name}.py", text)
    write(dirs.working_dir / "toml/pyproject.toml", "[")
    write(
        dirs.working_dir / "missing/pyproject.toml",
        '[project.entry-points."amplifier.modules"]\ntool-b-missing = "gone_b"\n',
    )
    write(
        dirs.working_dir / "taken/pyproject.toml",
        '[project.entry-points."amplifier.modules"]\ntool-b-taken = "json"\n',
    )
    write(dirs.working_dir / "taken/json.py", GOOD)
    (dirs.working_dir / "empty").mkdir()
    others = {
        f"tool-b-{name}": dirs.working_dir / name
        for name in ("toml", "missing", "taken", "empty", "gone")
    }
    tools = {
        "tool-b-first": folders.pop("tool-b-first"),
        **folders,
        **others,
        "tool-b-last": folders["tool-b-last"],
    }
    yield {
        "session": {
            "orchestrator": "loop-basic",
            "context": "context-simple",
            "limits": {"import_timeout": 0.5},
        },
        "providers": [{"module": "provider-scripted", "config": {"responses": ["hi"]}}],
        "tools": [
            *(
                {"module": module, "source": str(path)}
                for module, path in tools.items()
            ),
            {"module": "tool-b-refused", "source": "git+http://git.example/x"},
        ],
    }
    for name in [
        name for name in sys.modules if name.startswith("amplifier_module_tool_b_")
    ]:
        sys.modules.pop(name, None)


async def test_each_bad_source_is_named_and_the_others_load(
    dirs: AppDirs, plan: JSONObject
) -> None:
    async with open_session(composed(plan, dirs.working_dir)) as opened:
        failed = {
            failure.module_id: str(failure) for failure in opened.session.failures
        }
        assert sorted(opened.session.coordinator.tools) == ["first", "last"]
        assert await opened.session.execute("go") == "hi"

    expected = {f"tool-b-{name}": cause for name, (_, cause) in BAD.items()}
    expected |= {
        "tool-b-toml": "pyproject.toml",
        "tool-b-missing": "gone_b",
        "tool-b-taken": str(dirs.working_dir / "taken/json"),
        "tool-b-empty": "empty",
        "tool-b-gone": "is no folder",
        "tool-b-refused": "git is asked by",
    }
    assert sorted(failed) == sorted(expected)
    assert {
        module: cause in failed[module] for module, cause in expected.items()
    } == dict.fromkeys(expected, True)
