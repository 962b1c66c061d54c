"""The tables of settings say what the code says, and the example plans are plans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest
import yaml

from amplifier import MountPlanValidator
from amplifier_kit.vendors import VendorConfig
from amplifier_module_context_persistent import PersistentConfig
from amplifier_module_context_simple import ContextConfig
from amplifier_module_hooks_approval import ApprovalConfig
from amplifier_module_hooks_backup import BackupConfig
from amplifier_module_hooks_otel import TelemetryConfig
from amplifier_module_hooks_status_context import StatusContextConfig
from amplifier_module_hooks_streaming_ui import StreamingUIConfig
from amplifier_module_loop_events import EventsConfig
from amplifier_module_loop_streaming import StreamingConfig
from amplifier_module_provider_scripted import ScriptedConfig, ScriptedResponse
from amplifier_module_tool_task import TaskConfig
from amplifier_sdk import Limits, LoopConfig

ROOT: Final = Path(__file__).resolve().parents[2]
ROW: Final = re.compile(
    r"^\| `(?P<key>\w+)` \| (?P<type>[^|]+) \| (?P<default>[^|]+) \|", re.MULTILINE
)
MODULES: Final = {
    "context-persistent": (PersistentConfig,),
    "hooks-approval": (ApprovalConfig,),
    "hooks-backup": (BackupConfig,),
    "hooks-otel": (TelemetryConfig,),
    "hooks-status-context": (StatusContextConfig,),
    "hooks-streaming-ui": (StreamingUIConfig,),
    "loop-basic": (LoopConfig,),
    "loop-events": (EventsConfig,),
    "loop-streaming": (StreamingConfig,),
    "context-simple": (ContextConfig,),
    "provider-scripted": (ScriptedConfig, ScriptedResponse),
    "tool-task": (TaskConfig,),
}
WORDS: Final = {"none": None, "null": None, "false": False, "true": True, "empty": ""}


def _section(path: Path, title: str) -> str:
    return path.read_text("utf-8").split(f"\n{title}\n")[1].split("\n#")[0]


def _readme(module: str) -> Path:
    return ROOT / "plugins" / f"amplifier-module-{module}" / "README.md"


def _defaults(cls: type) -> Iterator[tuple[str, object]]:
    for field in attrs.fields(cls):
        yield field.name, field.default


def _written(default: str) -> object:
    """Read a cell: a number, a word for a value, or a text."""
    text = default.strip().strip("`")
    try:
        return float(text)
    except ValueError:
        return WORDS.get(text, text)


@pytest.mark.parametrize("module", MODULES)
def test_a_modules_readme_lists_its_settings_in_order(module: str) -> None:
    fields = [field.name for cls in MODULES[module] for field in attrs.fields(cls)]

    assert sorted(
        row["key"]
        for row in ROW.finditer(_section(_readme(module), "## Configuration"))
    ) == sorted(fields)


@pytest.mark.parametrize(
    "module", ["loop-basic", "loop-events", "loop-streaming", "context-simple"]
)
def test_a_modules_readme_states_the_defaults(module: str) -> None:
    listed = {
        row["key"]: _written(row["default"])
        for row in ROW.finditer(_readme(module).read_text("utf-8"))
    }

    assert listed == dict(_defaults(MODULES[module][0]))


@pytest.mark.parametrize("module", MODULES)
def test_the_example_of_a_modules_readme_is_a_plan(module: str) -> None:
    (example,) = re.findall(
        r"```yaml\n(.*?)```", _readme(module).read_text("utf-8"), re.DOTALL
    )

    assert MountPlanValidator().validate(yaml.safe_load(example)) == ()
    assert module in example


def test_page_of_mount_plan_lists_every_limit_with_its_default() -> None:
    table = _section(
        ROOT / "docs" / "reference" / "mount-plan.md", "### `session.limits`"
    )

    assert [
        (row["key"], _written(row["default"])) for row in ROW.finditer(table)
    ] == list(_defaults(Limits))


@pytest.mark.parametrize(
    ("title", "path"),
    [("## Sections", ""), ("### A module", "tools[0]."), ("### `session`", "session.")],
)
def test_page_of_mount_plan_lists_keys_that_plan_may_have(
    title: str, path: str
) -> None:
    listed = [
        row["key"]
        for row in ROW.finditer(
            _section(ROOT / "docs" / "reference" / "mount-plan.md", title)
        )
    ]
    plan: dict[str, object] = {
        "session": {"?": 1},
        "tools": [{"module": "x", "?": 1}],
        "?": 1,
    }

    problems = [str(problem) for problem in MountPlanValidator().validate(plan)]

    (problem,) = [
        problem
        for problem in problems
        if problem.startswith(f"{path}?: unknown key; known: ")
    ]
    assert sorted(problem.split("known: ")[1].split(", ")) == sorted(listed)


def test_the_page_on_vendors_names_every_option_with_its_default() -> None:
    page = (ROOT / "docs/how-to/vendors.md").read_text("utf-8")
    listed: dict[str, str] = {}
    for keys, defaults in re.findall(
        r"^\| (`[^|]+`) \| ([^|]+) \|", page, re.MULTILINE
    ):
        values = defaults.split(", ")
        listed.update(zip(re.findall(r"`(\w+)`", keys), values, strict=False))
    fields = {field.name: field.default for field in attrs.fields(VendorConfig)}

    assert fields.keys() <= set(re.findall(r"`(\w+)`", page))
    for name in listed.keys() & fields.keys():
        shown = WORDS.get(listed[name], listed[name])
        assert str(shown) == f"{fields[name]}".removesuffix(".0"), name
