"""Typing goes to the screen, whatever else is on its way there; `measure` says how quickly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.measure import BIG_OUTPUT, chat_of, key_times, paced

pytestmark = pytest.mark.process

_KEYS = 25


def test_keys_are_shown_while_an_answer_streams(tmp_path: Path) -> None:
    plan, environment = paced(tmp_path, rate=2_000, count=1_000_000)
    with chat_of(plan, environment) as terminal:
        terminal.type("go\r")
        terminal.read_until("word.")

        assert len(key_times(terminal, _KEYS)) == _KEYS
        terminal.read_until("word.")


def test_keys_are_shown_beside_a_large_output(tmp_path: Path) -> None:
    plan, environment = paced(tmp_path, rate=1, count=1)
    with chat_of(plan, environment) as terminal:
        terminal.type(f"!{BIG_OUTPUT}\r")
        terminal.read_until("> !")

        assert len(key_times(terminal, _KEYS)) == _KEYS
