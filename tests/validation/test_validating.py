"""Whole validations: a project goes in, a report comes out."""

from __future__ import annotations

import importlib
import io
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Final

import attrs
import pytest

from amplifier.validation import CheckResult, validate, validator
from amplifier.validation.inspection import inspect_module
from amplifier.validation.journal import FindingsJournal
from amplifier.validation.supervision import ChildRun, ChildTask
from amplifier_sdk.convert import from_json
from amplifier_sdk.errors import ConfigError
from tests.validation.projects import SOUND, only, write_project

pytestmark = pytest.mark.process

PACKAGE: Final = "amplifier_module_tool_sound"

ECHO: Final = """
from amplifier_sdk import ToolResult

class Echo:
    name = "echo"
    description = "Return the text."
    input_schema = {"type": "object", "properties": {}}

    async def execute(self, input):
        return ToolResult(output="yes")

"""
"""A tool without decorators."""


def mounting(*lines: str, before: str = "") -> str:
    """Write a module that mounts the tool after some lines."""
    body = "".join(f"    {line}\n" for line in (*lines, "return Echo()"))
    return f"{ECHO}{before}\nasync def Main(coordinator, config):\n{body}"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the tasks of children in the test's own process, which takes a tenth of the time."""
    monkeypatch.setattr(validator, "run_child", run_here)


def run_here(task: ChildTask) -> ChildRun:
    """Do the task of a child in this process, with a journal in memory; forget the module afterwards."""
    before, path, written = set(sys.modules), list(sys.path), io.StringIO()
    if task.location is not None:
        sys.path.insert(0, str(task.location.parent))
    importlib.invalidate_caches()
    try:
        inspect_module(task, FindingsJournal(written, task.timeout))
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if name.startswith("amplifier_module_"):
                del sys.modules[name]
    records = [json.loads(line) for line in written.getvalue().splitlines()]
    return ChildRun(
        results=tuple(
            from_json(record["result"], CheckResult)
            for record in records
            if "result" in record
        ),
        type=next((record["type"] for record in records if "type" in record), None),
    )


@pytest.mark.parametrize("module", SOUND)
def test_a_sound_module_of_each_type_passes_without_a_warning(
    tmp_path: Path, module: str
) -> None:
    report = validate(write_project(tmp_path, module))

    assert [result for result in report.all_results if result.status != "passed"] == []
    assert report.passed
    assert report.modules[0].id == module
    assert report.count("passed") >= 18


@attrs.frozen
class Fault:
    """A module with one fault: the check that finds it, how bad it is, and a word of the message."""

    check: str
    words: str
    source: str
    module: str = "tool-sound"
    status: str = "error"
    target: str | None = None
    # it would harm, or its finding comes from, the process that runs it
    in_child: bool = False


FAULTS: Final = {
    "an import that raises": Fault(
        "module.imports", "RuntimeError: no", "raise RuntimeError('no')"
    ),
    "an import that exits": Fault(
        "module.imports", "SystemExit: 3", "import sys\nsys.exit(3)"
    ),
    "a missing dependency": Fault(
        "module.imports", "no_such_thing", "import no_such_thing"
    ),
    "a missing name": Fault("module.imports", "has no attribute 'Main'", "Other = 1"),
    "no type": Fault("module.type", "Nothing says", mounting(), "sound"),
    "an unknown type": Fault(
        "module.type",
        "'gadget'",
        mounting(before="__amplifier_module_type__ = 'gadget'"),
    ),
    "an id of another type": Fault(
        "module.type",
        "suggests 'orchestrator'",
        dedent(SOUND["tool-sound"]),
        "loop-sound",
        "warning",
    ),
    "a sync mount": Fault(
        "module.mountable", "async def", "def Main(coordinator, config): ..."
    ),
    "a mount of one parameter": Fault(
        "module.mountable", "(coordinator, config)", "async def Main(coordinator): ..."
    ),
    "nothing to mount": Fault(
        "module.mountable", "no 'mount' function", "Main = object()"
    ),
    "a sync on_session_ready": Fault(
        "module.on-session-ready",
        "not async",
        mounting(before="def on_session_ready(coordinator): ..."),
    ),
    "a mount that raises": Fault(
        "module.mounting",
        "RuntimeError: no disk",
        mounting("raise RuntimeError('no disk')"),
    ),
    "a mount that never ends": Fault(
        "module.mounting",
        "took longer than",
        mounting("await anyio.sleep_forever()", before="import anyio"),
        in_child=True,
    ),
    "a tool without execute": Fault(
        "module.mounting", "execute", mounting("del Echo.execute")
    ),
    "a mount of nothing": Fault(
        "module.mounting",
        "nothing was mounted",
        mounting("return None"),
        status="warning",
    ),
    "a hook that hears nothing": Fault(
        "module.mounting",
        "no handler was registered",
        mounting("return None"),
        "hooks-sound",
        "warning",
    ),
    "a handler of one parameter": Fault(
        "hook.handlers",
        "an event's name and its data",
        SOUND["hooks-sound"]
        .replace("self, event, data", "self, data")
        .replace('{"event": event}', "{}"),
        "hooks-sound",
    ),
    "a configuration that is not read": Fault(
        "module.configuration", "in silence", mounting(), status="warning"
    ),
    "a thread that is left": Fault(
        "module.cleanup",
        "the thread 'lasting'",
        mounting(
            "threading.Thread(target=threading.Event().wait, daemon=True, name='lasting').start()",
            before="import threading",
        ),
        in_child=True,
    ),
    "a file that is left open": Fault(
        "module.cleanup",
        "the open file",
        mounting("kept.append(open(__file__))", before="kept = []"),
        in_child=True,
    ),
    "an event that is not declared": Fault(
        "module.events",
        "mine:mounted",
        mounting("await coordinator.hooks.emit('mine:mounted', {})"),
        status="warning",
    ),
    "an event that is never emitted": Fault(
        "module.events",
        "mine:never",
        mounting(
            "coordinator.register_contributor('observability.events', 'x', lambda: ['mine:never'])"
        ),
        status="warning",
    ),
    "a configuration that fails the module in another way": Fault(
        "module.configuration",
        "for another reason: ",
        mounting("assert not config, 'no configuration, please'"),
        status="skipped",
    ),
    "a module that mounts only once": Fault(
        "module.cleanup",
        "only once",
        mounting("counts.append(1)", "assert len(counts) < 3", before="counts = []"),
    ),
    "an event whose name is made at run time, beside one that is not declared": Fault(
        "module.events",
        "mine:told",
        mounting(
            "for name in ('a', 'b'):",
            "    await coordinator.hooks.emit(f'mine:{name}', {})",
            "await coordinator.hooks.emit('mine:told', {})",
        ),
        status="warning",
    ),
    "an error without words": Fault(
        "module.mounting", "KeyError", mounting("raise KeyError")
    ),
    "a package without a main": Fault(
        "module.imports", "neither 'mount' nor", "x = 1", target=PACKAGE
    ),
    "a package of the same name elsewhere": Fault(
        "module.imports",
        "Another package of the same name",
        mounting(before="import sys; __file__ = '/elsewhere'"),
    ),
    "an object that is no module": Fault(
        "module.mountable", "no 'mount' function", "class Main:\n    ..."
    ),
    "a word on standard output": Fault(
        "module.stdout",
        "hello there",
        mounting(before="print('hello there')"),
        status="warning",
        in_child=True,
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found_under_its_check_with_its_fix(
    tmp_path: Path, fault: Fault, request: pytest.FixtureRequest
) -> None:
    project = write_project(tmp_path, fault.module, fault.source, target=fault.target)
    if not fault.in_child:
        request.getfixturevalue("in_process")

    report = validate(project, timeout=1 if fault.in_child else 30)

    result = only(report, fault.check)
    assert result.status == fault.status
    assert fault.words in result.message
    assert result.fix or result.status == "skipped"
    assert report.passed == (fault.status != "error")


@pytest.mark.usefixtures("in_process")
def test_the_place_of_a_fault_is_a_line_of_the_project(tmp_path: Path) -> None:
    source = "async def Main(coordinator, config):\n    return 1 / 0\n"

    result = only(validate(write_project(tmp_path, source=source)), "module.mounting")

    assert result.place == f"src/{PACKAGE}/__init__.py:2"
    assert "ZeroDivisionError" in result.message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os\nos._exit(0)\n", "exit code 0"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "SIGSEGV"),
        ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGRTMIN + 5)\n", "signal "),
        (
            "import os, sys\nprint('x\\n' * 300_000, 'gone', file=sys.stderr, flush=True)\nos._exit(9)\n",
            "gone",
        ),
        ("while True:\n    pass\n", "took longer than 1 s"),
    ],
    ids=[
        "it exits",
        "it kills itself",
        "it crashes",
        "it sends a nameless signal",
        "it says much",
        "it never ends",
    ],
)
def test_an_import_that_takes_the_process_along_is_reported(
    tmp_path: Path, source: str, words: str
) -> None:
    result = only(
        validate(write_project(tmp_path, source=source), timeout=1), "module.imports"
    )

    assert result.status == "error"
    assert words in result.message


def test_mount_that_blocks_event_loop_is_reported_with_its_line(
    tmp_path: Path,
) -> None:
    source = "import time\nasync def Main(coordinator, config):\n    time.sleep(1000)\n"

    result = only(
        validate(write_project(tmp_path, source=source), timeout=0.5), "module.mounting"
    )

    assert "without giving way" in result.message
    assert result.place == f"src/{PACKAGE}/__init__.py:3"


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="elsewhere the system does not list a process's children",
)
def test_process_that_is_left_is_error_and_does_not_survive(
    tmp_path: Path,
) -> None:
    source = mounting(
        "child = subprocess.Popen(['sleep', '1000'])",
        f"with open({str(tmp_path / 'pids')!r}, 'a') as file:",
        "    print(child.pid, file=file)",
        before="import subprocess",
    )

    result = only(validate(write_project(tmp_path, source=source)), "module.cleanup")

    assert "the process " in result.message
    for number in (tmp_path / "pids").read_text().split():
        assert _has_ended(int(number))


def _has_ended(number: int) -> bool:
    """Wait until a process has ended, whoever its parent is; it has a few seconds."""
    try:
        process = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 5)[0])
    finally:
        os.close(process)


def test_module_that_switches_deadline_off_is_ended_all_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.validation.supervision.GRACE", 2.5)
    source = "import faulthandler\nfaulthandler.cancel_dump_traceback_later()\nwhile True:\n    pass\n"

    result = only(
        validate(write_project(tmp_path, source=source), timeout=0.1), "module.imports"
    )

    assert "prevented its deadline from ending it" in result.message


WAITING: Final = """
import sys
from amplifier.validation import validate

validate(sys.argv[1], timeout=1000)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere there is no handle to wait for a process"
)
def test_a_module_ends_with_whoever_validates_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "number")
    source = f"import os, time\nprint(os.getpid(), file=open({str(tmp_path / 'number')!r}, 'w'))\ntime.sleep(1000)\n"
    project = write_project(tmp_path, source=source)

    with subprocess.Popen([sys.executable, "-c", WAITING, str(project)]) as waiting:
        number = int((tmp_path / "number").read_text())
        waiting.kill()

    assert _has_ended(number)


@pytest.mark.usefixtures("in_process")
def test_a_package_that_mounts_by_itself_needs_no_entry_point(tmp_path: Path) -> None:
    source = "from amplifier_sdk import tool\n\n@tool\ndef echo(text: str) -> str:\n    return text\n"
    project = write_project(tmp_path, source=source, target=PACKAGE)

    assert validate(project / "src" / PACKAGE).modules[0].passed


@pytest.mark.usefixtures("in_process")
def test_an_implementation_of_a_hook_tells_the_type(tmp_path: Path) -> None:
    source = f"{ECHO}from amplifier_sdk.hookspecs import amplifier_tool\n\n@amplifier_tool.impl\n"
    source += "async def mount_it(coordinator, config):\n    return Echo()\n"

    report = validate(
        write_project(
            tmp_path,
            "sound",
            source,
            target=PACKAGE.removesuffix("tool_sound") + "sound",
        )
    )

    assert only(report, "module.type").message == "The module's type is tool."


def test_module_installed_elsewhere_is_reported_misplaced(
    tmp_path: Path,
) -> None:
    report = validate(
        write_project(tmp_path, target="amplifier_module_tool_filesystem:Filesystem")
    )

    assert only(report, "module.layout").status == "error"
    assert only(report, "module.mounting").status == "passed"
    assert only(report, "module.events").status == "skipped"


def test_the_modules_code_runs_neither_here_nor_in_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = mounting(before="open('trace', 'w').close()")

    validate(write_project(tmp_path, source=source))

    assert not (tmp_path / "trace").exists()
    assert "amplifier_module_tool_sound" not in sys.modules


def test_a_module_cannot_read_what_is_typed(tmp_path: Path) -> None:
    source = mounting(before="import sys\nassert sys.stdin.read() == ''")

    assert validate(write_project(tmp_path, source=source)).passed


@pytest.mark.usefixtures("in_process")
def test_the_structure_is_checked_before_anything_is_mounted(tmp_path: Path) -> None:
    """Row 42: what can be seen without side effects is seen first, and a module that fails there is never mounted."""
    trace = tmp_path / "mounted"
    source = f"def Main(coordinator, config):\n    open({str(trace)!r}, 'w').close()\n"

    report = validate(write_project(tmp_path, source=source))

    assert only(report, "module.mountable").status == "error"
    assert not trace.exists()


@pytest.mark.usefixtures("in_process")
def test_the_configuration_of_pyproject_is_used(tmp_path: Path) -> None:
    source = SOUND["tool-sound"].replace("size: int = 1", "size: int")
    more = "\n[tool.amplifier.validate.tool-sound]\nconfig = { size = 2 }\n"

    assert not validate(write_project(tmp_path / "without", source=source)).passed
    assert validate(write_project(tmp_path / "with", source=source, more=more)).passed


@pytest.mark.usefixtures("in_process")
def test_a_given_configuration_goes_before_that_of_pyproject(tmp_path: Path) -> None:
    more = "\n[tool.amplifier.validate.tool-sound]\nconfig = { size = 'large' }\n"
    project = write_project(tmp_path, more=more)

    refused = only(validate(project), "module.mounting")

    assert "size: expected an integer" in refused.message
    assert validate(project, config={"size": 3}).passed


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            "\n[tool.amplifier.validate.tool-sound]\nconfg = {}\n",
            "did you mean 'config'",
        ),
        ("\n[tool.amplifier.validate.tool-sound]\nconfig = 3\n", "a table; got int"),
    ],
)
def test_settings_that_are_none_are_refused(
    tmp_path: Path, more: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        validate(write_project(tmp_path, more=more))


@pytest.mark.usefixtures("in_process")
def test_a_type_may_be_given_where_nothing_else_tells_it(tmp_path: Path) -> None:
    project = write_project(tmp_path, "sound", mounting())

    assert not validate(project).passed
    assert validate(project, type="tool").modules[0].type == "tool"


@pytest.mark.usefixtures("in_process")
def test_a_type_that_the_module_does_not_declare_is_an_error(tmp_path: Path) -> None:
    result = only(validate(write_project(tmp_path), type="provider"), "module.type")

    assert result.status == "error"
    assert "was to be checked as 'provider'" in result.message


def test_an_unknown_type_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'provider'"):
        validate(".", type="providr")


@pytest.mark.usefixtures("in_process")
def test_every_module_of_a_distribution_is_checked(tmp_path: Path) -> None:
    more = 'hooks-sound = "amplifier_module_tool_sound.hooks:Main"\n'
    source = {f"src/{PACKAGE}/hooks.py": "raise OSError('gone')\n"}

    report = validate(write_project(tmp_path, more=more, files=source))

    assert [(module.id, module.passed) for module in report.modules] == [
        ("tool-sound", True),
        ("hooks-sound", False),
    ]
    assert not report.passed


@pytest.mark.usefixtures("in_process")
def test_a_report_is_json_with_every_key(tmp_path: Path) -> None:
    report = validate(write_project(tmp_path, source="raise OSError\n"))

    data = json.loads(json.dumps(report.to_json()))
    assert data["version"] == 1
    assert data["passed"] is False
    assert data["counts"]["error"] == 1
    assert data["distribution"] == "amplifier-module-tool-sound"
    assert {
        key
        for module in data["modules"]
        for result in module["results"]
        for key in result
    } == {
        "backend",
        "check",
        "fix",
        "message",
        "place",
        "status",
    }
