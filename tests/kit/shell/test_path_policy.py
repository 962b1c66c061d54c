"""Which names are secrets to a shell text: those of the file tools, and a few more."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from amplifier_kit.files.path_rules import SECRET_NAMES
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.scripts import Word

PLACES = PathPolicy(directory="/srv/app", writable=("/srv/app",))


@pytest.mark.parametrize(
    "name", [name for name in SECRET_NAMES if not name.startswith("!")]
)
@pytest.mark.parametrize("form", ["{}", "a/{}", "/home/u/{}/x", "--file={}", "{}:ro"])
def test_what_file_tools_do_not_read_shell_text_does_not_either(
    name: str, form: str
) -> None:
    assert PLACES.is_secret(form.format(name.replace("*", "x")))
    assert PLACES.is_secret(form.format(name.replace("*", "x").upper()))


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/etc/sudoers.d/x",
        "/proc/self/environ",
        "/proc/1/mem",
        "secrets.txt",
        ".config/gcloud/x",
    ],
)
def test_a_shell_text_reaches_further_and_reads_less(path: str) -> None:
    assert PLACES.is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        ".env.sample",
        "mem",
        "src/environ",
        "keyboard.py",
        "env",
        "notes.pub",
    ],
)
def test_other_names_are_no_secrets(path: str) -> None:
    assert not PLACES.is_secret(path)


@pytest.mark.parametrize("pattern", [".s?h/x", ".e*v", ".[e]nv", ".aw*/credentials"])
def test_a_pattern_that_may_mean_a_secret_is_one(pattern: str) -> None:
    assert PLACES.is_secret(pattern)


@pytest.mark.parametrize(
    ("name", "hidden", "expected"),
    [
        (".git/refs/id_rsa", True, False),
        (".git/refs/id_rsa", False, False),
        (".config/id_rsa", True, True),
        (".config/id_rsa", False, False),
        ("src/id_rsa", False, True),
        ("src/.env", True, True),
        ("src/.env", False, False),
    ],
)
def test_a_folder_holds_a_secret_where_a_search_looks(
    tmp_path: Path, name: str, hidden: bool, expected: bool
) -> None:
    root = tmp_path.resolve()
    (root / name).parent.mkdir(parents=True)
    (root / name).touch()
    policy = PathPolicy(directory=str(root), writable=(str(root),), home="/home/me")

    assert policy.holds_secret(".", hidden=hidden) is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/usr/share/d*/README", True),
        ("/opt/*/README", True),
        ("/et*/passwd", False),
        ("/etc/p*", False),
        ("/*/passwd", False),
        ("/var/lo*/x", False),
    ],
)
def test_pattern_that_may_lead_to_private_files_is_not_read(
    pattern: str, expected: bool
) -> None:
    word = Word(raw=pattern, values=(pattern,), is_pattern=True)

    policy = attrs.evolve(PLACES, home="/home/me")
    assert policy.may_read(word) is expected


def test_what_the_product_keeps_is_secret_and_what_is_renamed_is_no_scrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "own"))
    assert PLACES.is_secret(str((tmp_path / "own/sessions/x").resolve()))
    changing = attrs.evolve(PLACES, is_changing=True)
    assert [policy.is_scrap("/srv/app/build") for policy in (PLACES, changing)] == [
        True,
        False,
    ]
