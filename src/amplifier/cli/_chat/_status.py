"""The status line: what a conversation is in, in one row; on a narrow terminal what matters least is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from amplifier.app.commands.talk import Talk
from amplifier.app.sessions.live_figures import LiveFigures, window_of
from amplifier.app.text.figures import dollars, short_number
from amplifier_kit.terminal import columns_of, cut, one_line
from amplifier_sdk.chat import Usage

__all__ = ["MODE_NAMES", "StatusLine"]

MODE_NAMES: Final = {"ask": "ask", "accept-edits": "accept edits", "plan": "plan mode"}
"""The modes, as they are shown."""

_BETWEEN: Final = " | "
_LONGEST: Final = 40


@attrs.define(eq=False)
class StatusLine:
    """Writes the status of a conversation.

    Args:
        talk: the conversation.
        figures: what its events say.
        branch: what is checked out where the person works; empty outside a repository.
    """

    talk: Talk
    figures: LiveFigures
    branch: str = ""

    def text(self, doing: str, width: int) -> str:
        """Return the row.

        Args:
            doing: what runs; empty between turns.
            width: how many columns there are.
        """
        # What a part is worth stands before it: the least is left out first.
        ranked = [
            (9, doing),
            (8, MODE_NAMES[self.talk.modes.current]),
            (5, self._model()),
            (3, self._folder()),
            (6, self._context()),
            (7, self._spent()),
            (4, self._children()),
        ]
        parts = [(rank, one_line(text, _LONGEST)) for rank, text in ranked if text]
        while len(parts) > 1 and columns_of(_joined(parts)) > width:
            parts.remove(min(parts))
        return cut(_joined(parts), width)

    def _model(self) -> str:
        talk, figures = self.talk, self.figures
        provider = talk.provider or figures.provider or self._only_provider()
        if talk.provider or talk.model:  # chosen, and may not have answered yet
            model = talk.model
        else:
            model = figures.model
        return "/".join(filter(None, (provider, model)))

    def _only_provider(self) -> str:
        return next(iter(self.talk.opened.session.coordinator.providers), "")

    def _folder(self) -> str:
        folder = self.talk.opened.composition.dirs.working_dir
        home = Path.home()
        if folder.is_relative_to(home) and folder != home:
            shown = f"~/{folder.relative_to(home)}"
        else:
            shown = str(folder)
        if len(shown) > _LONGEST // 2:
            shown = folder.name
        if self.branch:
            return f"{shown} ({self.branch})"
        return shown

    def _context(self) -> str:
        tokens = self.figures.context_tokens
        if tokens is None:
            return ""
        providers = self.talk.opened.session.coordinator.providers
        answering = providers.get(self.talk.provider or self.figures.provider)
        window = None if answering is None else window_of(answering)
        if window is None:
            return f"context {short_number(tokens)}"
        return f"context {tokens / window:.0%} of {short_number(window)}"

    def _spent(self) -> str:
        usage = self.talk.opened.spent_since.usage
        if usage is None:
            return ""
        if usage.cost_usd is not None:
            return dollars(usage.cost_usd)
        return f"{short_number(_tokens(usage))} tokens"

    def _children(self) -> str:
        children = self.talk.opened.session.family.open_children
        behind = sum(child.family.is_detached for child in children)
        beside = len(children) - behind
        shown = []
        if beside:
            shown.append(f"{beside} child" if beside == 1 else f"{beside} children")
        if behind:
            shown.append(f"{behind} in background")
        return ", ".join(shown)


def _joined(parts: list[tuple[int, str]]) -> str:
    return _BETWEEN.join(text for _, text in parts)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens
