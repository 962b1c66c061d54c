"""The person's own folder is found in one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.files.homes import amplifier_home


@pytest.mark.parametrize("environ", [{}, {"AMPLIFIER_HOME": ""}])
def test_it_is_below_the_home_folder(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert amplifier_home(environ) == tmp_path / ".amplifier"


def test_the_environment_moves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert amplifier_home({"AMPLIFIER_HOME": "/elsewhere"}) == Path("/elsewhere")
    assert amplifier_home({"AMPLIFIER_HOME": "state"}) == tmp_path / "state"
