"""What is pasted: short texts as they are, of others a placeholder."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.cli._chat._pastes import Pastes


def test_a_short_text_stays(tmp_path: Path) -> None:
    assert Pastes().collapse("one\ntwo") == "one\ntwo"
    assert Pastes().collapse(str(tmp_path / "no.png")) == str(tmp_path / "no.png")


def test_a_long_text_is_collapsed_and_sent_whole() -> None:
    pastes = Pastes()
    first, second = "line\n" * 30, "x" * 2_000
    shown = f"Look at {pastes.collapse(first)} and {pastes.collapse(second)}"

    assert shown == ("Look at [Pasted #1: 31 lines] and [Pasted #2: 2,000 characters]")
    assert pastes.expand(shown) == f"Look at {first} and {second}"
    assert pastes.expand("[Pasted #9: 1 lines]") == "[Pasted #9: 1 lines]"


@pytest.mark.parametrize("quote", ["", "'"])
def test_an_image_is_a_mention_of_its_file(tmp_path: Path, quote: str) -> None:
    image = tmp_path / "my shot].png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    pastes = Pastes()
    shown = pastes.collapse(f"{quote}{image}{quote}\n")

    assert shown == "[Image #1: my shot).png]"
    assert pastes.expand(shown) == f'@"{image}"'
