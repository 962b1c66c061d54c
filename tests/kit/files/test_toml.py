"""Projects' files are read strictly, and cost little whatever is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.files.toml import read_toml
from amplifier_sdk.errors import ConfigError
from tests.timing import takes_at_most


@pytest.mark.parametrize(
    "text", ["[a]\nb.c = [1, [2]]\n", "\ufeff[a]\nb.c = [1, [2]]\n"]
)
def test_a_file_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text, "utf-8")
    assert read_toml(path) == {"a": {"b": {"c": [1, [2]]}}}


@pytest.mark.figures
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "line 1"),
        (f"x = {'[' * 10_000}", "nests too deep"),
        ("a." * 1_900_000, "more than 500 parts"),
        ("a . 'b' . " * 300_000, "more than 500 parts"),
        (f"{'a' * 3_000_000}.", "line 1"),
        (f"# {' a' * 1_500_000}\n[", "line 2"),
        (f"# {'a.' * 400} " * 2_000, "line 2"),
    ],
)
def test_what_is_no_file_of_a_project_is_refused_at_once(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f"{text}\n]", "utf-8")

    def read() -> None:
        with pytest.raises(ConfigError, match=problem):
            read_toml(path)

    assert takes_at_most(3.0, read)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        read_toml(tmp_path / "gone.toml")
