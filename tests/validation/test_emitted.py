"""The events that a package's source emits."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from amplifier.validation.emitted import emitted_events, inherited_events


def _write(folder: Path, source: str, name: str = "emitting") -> Path:
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text(dedent(source))
    return package


def test_texts_constants_and_attributes_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        from amplifier_sdk import events
        from amplifier_sdk.events import TOOL_PRE, Event

        MINE = Event("mine:done")

        async def run(hooks):
            await hooks.emit("mine:begun", {})
            await hooks.emit(MINE, {})
            await hooks.emit(TOOL_PRE, {})
            await hooks.emit_and_collect(events.TOOL_POST, {})
            await hooks.other("not:emitted")
    """
    package = _write(tmp_path, source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "emitting", raising=False)
    __import__("emitting")

    emitted = emitted_events(package)

    assert emitted.is_complete
    assert list(emitted.places) == ["mine:begun", "mine:done", "tool:pre", "tool:post"]
    assert emitted.places["mine:begun"] == f"{package / '__init__.py'}:8"


@pytest.mark.parametrize("name", ["f'mine:{kind}'", "kind", "self.kind", "kinds[0]"])
def test_a_name_that_is_made_at_run_time_cannot_be_told(
    tmp_path: Path, name: str
) -> None:
    package = _write(
        tmp_path,
        f"async def run(self, hooks, kind):\n    await hooks.emit({name}, {{}})\n",
    )

    emitted = emitted_events(package)

    assert not emitted.is_complete
    assert emitted.places == {}


def test_a_single_file_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "emitting.py"
    file.write_text("emit('one', {})\nemit()\n")

    assert list(emitted_events(file).places) == ["one"]


def test_a_file_that_is_no_python_is_passed_over(tmp_path: Path) -> None:
    package = _write(tmp_path, "emit('one', {})\n")
    (package / "template.py").write_text("{{ no python")

    assert list(emitted_events(package).places) == ["one"]


def test_what_classes_emit_that_module_is_derived_from_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        class Base:
            async def run(self, hooks):
                await hooks.emit("base:done", {})
    """
    _write(tmp_path, source, "emitting_base")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "emitting_base", raising=False)
    base: type = __import__("emitting_base").Base

    assert inherited_events(type("Module", (base,), {})) == {"base:done"}
    assert inherited_events(base) == frozenset()
    assert inherited_events(base()) == frozenset()
