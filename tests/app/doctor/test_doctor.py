"""The doctor: what is found of each thing, what helps, and the exit code."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from amplifier.app.directories import AppDirs
from amplifier.app.doctor.environment import (
    EXTRAS,
    check_extras,
    check_home,
    check_platform,
    check_sandbox,
)
from amplifier.app.doctor.findings import DoctorFinding
from amplifier.app.doctor.modules import check_modules, import_modules, modules_of
from amplifier.app.doctor.storage import check_secrets, check_sessions, check_trust
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sessions.composition import new_record
from amplifier.app.settings.secrets import SecretStore
from amplifier.app.store.store import ProjectSessions
from amplifier.cli import main
from amplifier_kit.installation import install_command
from tests.app.installing import ACME, install, install_ours
from tests.app.projects import composed, write

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
BAD = """
    import os
    import sys
    import time

    name = __name__.rpartition("_")[2]
    if name == "ends":
        os._exit(7)
    if name == "hangs":
        time.sleep(60)
    if name == "fails":
        raise RuntimeError("no\\x1b[31m disk")
"""


def of(found: Iterable[DoctorFinding], area: str) -> list[tuple[str, str]]:
    return [
        (finding.status, finding.message) for finding in found if finding.area == area
    ]


@pytest.fixture(autouse=True)
def ours(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install_ours(site, "loop-basic", "context-simple", "provider-local")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.delenv("ACME_KEY", raising=False)
    return site


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all modules for sound, without a process that imports them."""

    def sound(*_: object, timeout: float) -> dict[str, str]:
        return {}

    monkeypatch.setattr("amplifier.app.doctor.modules.import_modules", sound)


# -- the ground


def test_this_python_and_platform_are_in_order() -> None:
    assert [finding.status for finding in check_platform()] == ["ok", "ok"]


def test_an_old_python_and_another_platform_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    monkeypatch.setattr(sys, "platform", "win32")
    old, other = check_platform()
    assert (old.status, old.remedy) == ("broken", "install Python 3.11 or later")
    assert (other.status, other.remedy) == ("warning", "use Linux or macOS")


def test_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    libraries = {
        extra: {line.partition(">")[0].replace("-", "_") for line in lines}
        for extra, lines in project.items()
        if not any(line.startswith("amplifier") for line in lines)
    }
    assert {extra: set(names) for extra, names in EXTRAS.items()} == libraries


def test_a_missing_extra_of_the_command_line_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [finding.status for finding in check_extras()] == ["ok"]
    monkeypatch.setitem(EXTRAS, "cli", ("filelock", "nowhere.inside"))
    missing, rest = check_extras()
    assert (missing.status, missing.remedy) == (
        "warning",
        install_command("amplifier[cli]"),
    )
    assert "nowhere.inside" in missing.message
    assert "not installed: cli" in rest.message


@pytest.mark.parametrize(
    ("mode", "status"),
    [(0o700, "ok"), (0o755, "warning"), (0o777, "broken"), (0o720, "broken")],
)
def test_who_may_look_into_the_own_folder_is_told(
    dirs: AppDirs, mode: int, status: str
) -> None:
    dirs.home.chmod(mode)
    assert of(check_home(dirs), "home")[0][0] == status


def test_a_folder_of_somebody_else_is_told(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert "belongs to somebody else" in of(check_home(dirs), "home")[0][1]


def test_folder_that_is_not_there_or_cannot_be_written_is_told(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirs.home.rmdir()
    assert "will be made" in of(check_home(dirs), "home")[0][1]
    dirs.home.write_text("no folder")
    assert of(check_home(dirs), "home")[0][0] == "broken"


@pytest.mark.parametrize(
    ("free", "status"), [(10**12, "ok"), (10**8, "warning"), (10**6, "broken")]
)
def test_scarce_space_is_told(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch, free: int, status: str
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    assert of(check_home(dirs), "space")[0][0] == status


def test_the_sandbox_is_told() -> None:
    assert (
        check_sandbox("bubblewrap").status == check_sandbox("landlock").status == "ok"
    )
    assert "install bubblewrap" in check_sandbox("none").remedy


# -- modules


@pytest.mark.usefixtures("imported")
def test_modules_are_told_in_order_in_which_they_are_mounted(ours: Path) -> None:
    install(ours, "acme-modules", {"provider-acme": "acme_modules:mount"}, ACME)
    plan = {
        "session": {
            "orchestrator": "loop-basic",
            "context": {"module": "context-simple"},
        },
        "providers": [
            "provider-acme",
            {"module": "provider-far", "source": "git+https://example.org/x"},
        ],
        "tools": ["tool-nowhere"],
    }
    assert modules_of(plan) == [  # type: ignore[arg-type]
        "loop-basic",
        "context-simple",
        "provider-acme",
        "tool-nowhere",
    ]
    found = list(check_modules(plan, timeout=60))  # type: ignore[arg-type]  # JSON data
    assert found[2].message == "3. provider-acme, of acme-modules 1.0"
    assert (found[3].status, found[3].remedy) == (
        "broken",
        "'amplifier module add tool-nowhere --source FOLDER' adds one of yours",
    )
    assert "provider-local" in found[-1].message


@pytest.mark.usefixtures("imported")
def test_a_package_in_place_of_one_of_ours_is_told(ours: Path) -> None:
    name = "amplifier-module-hooks-approval"
    install(ours, name, {"hooks-approval": "acme_modules:mount"}, ACME)
    plan = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "hooks": ["hooks-approval"],
    }
    first, _, reported, *_ = check_modules(plan, timeout=60)  # type: ignore[arg-type]  # JSON data

    assert first.status == "ok"
    assert reported.status == "warning"
    assert "another package of that name stands in place" in reported.message
    assert "'amplifier compat check hooks-approval'" in reported.remedy


def test_module_that_cannot_be_imported_does_not_hide_others(
    ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ends", "fails"):
        install(ours, f"bad-{name}", {f"tool-{name}": f"bad_{name}:mount"}, BAD)
    install(ours, "acme-modules", {"provider-acme": "acme_modules:mount"}, ACME)
    install(ours, "acme-again", {"provider-acme": "acme_again:mount"})
    problems = import_modules(
        ["tool-ends", "tool-fails", "loop-basic", "provider-acme"], timeout=60
    )
    assert problems["tool-ends"] == "importing it ended the process with code 7"
    assert "disk" in problems["tool-fails"]
    assert "acme-again" in problems["provider-acme"]
    assert "loop-basic" not in problems
    monkeypatch.setattr(
        "amplifier.app.doctor.modules.import_modules", lambda *_, **__: problems
    )
    statuses = {
        finding.message.partition(":")[0]: finding
        for finding in check_modules({"tools": ["tool-fails"]}, timeout=60)
    }
    assert statuses["1. tool-fails, of bad-fails 1.0"].status == "broken"
    assert statuses["tool-ends"].status == "warning"


def test_a_module_that_takes_all_the_time_is_told(ours: Path) -> None:
    install(ours, "bad-hangs", {"tool-hangs": "bad_hangs:mount"}, BAD)
    assert import_modules(["tool-hangs"], timeout=3) == {
        "tool-hangs": "importing it took more than 3 s"
    }


# -- what is kept


async def test_sessions_are_told_with_who_has_them_open(dirs: AppDirs) -> None:
    store = ProjectSessions.of(dirs)
    record = new_record(composed({}, dirs.working_dir))
    async with store.open(record):
        found = of(check_sessions(dirs), "sessions")
    assert "is open in" in found[0][1]
    assert found[1][1] == "1 sound, 1 of them open, 0 damaged"
    assert (
        of(check_sessions(dirs), "sessions")[0][1]
        == "1 sound, 0 of them open, 0 damaged"
    )


async def test_damaged_and_readable_sessions_are_told(dirs: AppDirs) -> None:
    store = ProjectSessions.of(dirs)
    for _ in range(2):
        async with store.open(new_record(composed({}, dirs.working_dir))):
            pass
    first, second = sorted(store.sessions.iterdir())
    (first / "metadata.json").write_text("{")
    second.chmod(0o755)
    found = list(check_sessions(dirs))
    assert [finding.status for finding in found] == ["warning", "warning", "ok"]
    assert str(first) in found[0].message
    assert "chmod -R go=" in found[1].remedy
    (second / "journal.jsonl.lock").mkdir()
    assert "cannot be locked" in " ".join(
        message for _, message in of(check_sessions(dirs), "sessions")
    )


def test_withheld_and_unreadable_trust_is_told(dirs: AppDirs) -> None:
    assert dirs.project is not None
    write(dirs.project / "settings.yaml", "ui: {}\n")
    project = ProjectFiles(dirs)
    project.evaluate("settings")
    withheld, count = check_trust(dirs, project)
    assert (withheld.status, withheld.remedy) == (
        "warning",
        "look at them and run 'amplifier trust'",
    )
    assert count.message == "0 folders are trusted"
    write(dirs.home / "trust/projects.json", "{").chmod(0o600)
    assert [finding.status for finding in check_trust(dirs, project)] == ["broken"]


def test_secrets_are_named_and_never_shown(dirs: AppDirs) -> None:
    SecretStore.of(dirs).set("ACME_KEY", "s3cret")
    (reported,) = check_secrets(dirs)
    assert reported.message == "1 are stored: ACME_KEY"
    (dirs.home / "secrets.json").write_text(
        '{"ACME_KEY": {"value": "s3cret"}, "LOST_KEY": {}}'
    )
    lost, _ = check_secrets(dirs)
    assert "LOST_KEY is named and not there" in lost.message
    (dirs.home / "secrets.json").write_text("{")
    assert [finding.status for finding in check_secrets(dirs)] == ["broken"]


# -- all of it


def examined(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments])


@pytest.fixture
def shop(dirs: AppDirs, monkeypatch: pytest.MonkeyPatch) -> AppDirs:
    monkeypatch.chdir(dirs.working_dir)
    dirs.home.chmod(0o700)
    return dirs


@pytest.mark.usefixtures("shop")
def test_what_is_in_order_ends_with_0() -> None:
    result = examined()
    assert result.exit_code == 0, result.output
    areas = {line.split()[1] for line in result.stdout.splitlines()}
    expected = "python platform extras home space secrets settings profile modules providers trust sandbox sessions"
    assert areas == set(expected.split())
    assert result.stderr.splitlines()[-1].startswith("0 broken")


@pytest.mark.usefixtures("imported")
def test_what_is_broken_ends_with_1_and_has_a_remedy(shop: AppDirs, ours: Path) -> None:
    install(
        ours,
        "acme-modules",
        {
            "provider-acme": "acme_modules:mount",
            "provider-lost": "acme_modules:mount_lost",
        },
        ACME,
    )
    providers = "[{module: provider-acme}, {module: provider-lost}]"
    write(shop.home / "settings.yaml", f"config: {{providers: {providers}}}\n")
    result = examined("--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert not data["passed"]
    reported = {
        check["message"]: check
        for check in data["checks"]
        if check["area"] == "providers"
    }
    assert (
        reported["provider-acme: its key is not there"]["remedy"]
        == "amplifier config secret set ACME_KEY"
    )
    assert reported["provider-acme: its key is not there"]["status"] == "broken"
    lost = next(
        check
        for message, check in reported.items()
        if message.startswith("provider-lost (not the one")
    )
    assert lost["status"] == "warning"
    assert "the disk is gone" in lost["message"]


@pytest.mark.usefixtures("imported")
def test_a_key_that_is_there_is_told_by_its_place(
    shop: AppDirs, ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(ours, "acme-modules", {"provider-acme": "acme_modules:mount"}, ACME)
    write(shop.home / "settings.yaml", "config: {active: provider-acme}\n")
    monkeypatch.setenv("ACME_KEY", "s3cret")
    result = examined()
    assert (
        "provider-acme: key ACME_KEY from the environment, model acme-1"
        in result.stdout
    )
    assert "s3cret" not in result.output


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize(
    ("text", "area", "reported"),
    [
        ("ui: {show_usag: 1}\n", "settings", "line 1, ui.show_usag"),
        ("profile: {active: nowhere}\n", "profile", "no such profile"),
        (
            "profile: {active: dev}\n",
            "profile",
            "the module 'tool-nowhere' is not installed",
        ),
        (
            "overrides: {context-simple: {config: {a: '${NOWHERE}'}}}\n",
            "profile",
            "NOWHERE is not set",
        ),
        ("profile: {active: bare}\n", "providers", "new sessions have no provider"),
    ],
)
def test_mistakes_in_files_are_told(
    shop: AppDirs, text: str, area: str, reported: str
) -> None:
    head = "---\nsession: {orchestrator: loop-basic, context: context-simple}\n"
    write(
        shop.home / "profiles/dev.md",
        f"{head}providers: [provider-local]\ntools: [tool-nowhere]\n---\n",
    )
    write(shop.home / "profiles/bare.md", f"{head}providers: []\n---\n")
    write(shop.home / "settings.yaml", text)
    result = examined("--json")
    assert result.exit_code == 1
    broken = [
        check
        for check in json.loads(result.stdout)["checks"]
        if check["status"] == "broken"
    ]
    assert [
        check
        for check in broken
        if check["area"] == area and reported in check["message"] and check["remedy"]
    ], broken


@pytest.mark.usefixtures("imported")
def test_secrets_that_others_may_have_written_hide_nothing_else(shop: AppDirs) -> None:
    write(shop.home / "secrets.json", '{"KEY": {"value": "s3cret"}}').chmod(0o666)
    result = examined("--json")
    assert result.exit_code == 1
    assert "s3cret" not in result.output
    checks = json.loads(result.stdout)["checks"]
    assert {check["area"] for check in checks if check["status"] == "broken"} == {
        "secrets",
        "providers",
    }
    assert checks[-1]["area"] == "sessions"


@pytest.mark.usefixtures("shop", "imported")
def test_a_check_that_fails_is_told_beside_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: AppDirs) -> list[DoctorFinding]:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr("amplifier.app.doctor.examination.check_sessions", fail)
    result = examined()
    assert result.exit_code == 1
    assert (
        "sessions   it cannot be read: RuntimeError: the disk is gone" in result.stdout
    )
