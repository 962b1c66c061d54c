"""What a person types for a plugin, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.plugins.addresses import read_address
from amplifier_sdk.errors import ConfigError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("anthropics/skills", "git+https://github.com/anthropics/skills"),
        ("a-b/c.d@v1.2", "git+https://github.com/a-b/c.d@v1.2"),
        ("https://git.example/a/b", "git+https://git.example/a/b"),
        ("https://git.example/a/b.git", "git+https://git.example/a/b.git"),
        ("https://github.com/a/b/", "git+https://github.com/a/b"),
        (
            "https://github.com/a/b/tree/main/plugins/x",
            "git+https://github.com/a/b@main#subdirectory=plugins/x",
        ),
        ("https://files.example/x.tar.gz", "https://files.example/x.tar.gz"),
        ("git+ssh://git@host/a/b@main", "git+ssh://git@host/a/b@main"),
        ("./here", "/shop/here"),
        ("../a/../here", "/here"),
        ("/there", "/there"),
    ],
)
def test_an_address_means_one_thing(typed: str, meant: str) -> None:
    assert str(read_address(typed, Path("/shop"))) == meant


def test_a_folder_never_stands_in_for_a_repository(tmp_path: Path) -> None:
    (tmp_path / "anthropics/skills").mkdir(parents=True)

    found = read_address("anthropics/skills", tmp_path)
    assert str(found) == "git+https://github.com/anthropics/skills"


@pytest.mark.parametrize(
    "typed",
    ["", "skills", "a/b/c", "-x/y", "a/b@--upload-pack=x", "http://h/a", "git@h:a/b"],
)
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(ConfigError):
        read_address(typed, Path("/shop"))


def test_no_credentials_are_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        read_address("https://me:hunter2@host/a/b", Path("/"))
    assert "hunter2" not in str(raised.value)
