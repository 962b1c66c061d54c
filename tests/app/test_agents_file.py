"""A line for AGENTS.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.agents_file import add_note


def test_a_line_is_added_to_the_end(tmp_path: Path) -> None:
    path = add_note(tmp_path, "Use tabs.")
    assert path.read_text() == "- Use tabs.\n"
    path.write_text("# Rules")
    add_note(tmp_path, "one\n two")
    assert path.read_text() == "# Rules\n- one two\n"


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "profile").write_text("mine")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/AGENTS.md").symlink_to(tmp_path / "profile")

    with pytest.raises(OSError, match="symbolic links"):
        add_note(tmp_path / "shop", "x")
    assert (tmp_path / "profile").read_text() == "mine"
