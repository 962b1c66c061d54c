"""Texts that give files other names: behind them a path may be another than when the text was evaluated."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["changes_names", "renames"]

_UNQUOTED: Final = str.maketrans("", "", "\"'\\")
_SEVERAL: Final = re.compile(r"[;&|\n(){}`<>]|\b(?:do|then)\b")
_RENAMING: Final = re.compile(
    r"(?<![\w.-])(?:mv|cp|ln|rename|rsync|install|unzip|tar|cpio|git\b[^;&|\n]*?\b(?:mv|checkout|switch|stash|restore|pull"
    r"|merge|reset|rebase|clone|init|worktree|apply|am|cherry-pick|revert|submodule))(?![\w-])"
)
"""Programs behind which a path may be another than when the text was evaluated."""


def renames(text: str) -> bool:
    """Whether a program in a text gives files other names."""
    # quotes inside a name, as in `m'v'`, change nothing for the shell
    return bool(_RENAMING.search(text.translate(_UNQUOTED)))


def changes_names(text: str) -> bool:
    """Whether a text gives files other names before it uses them: what is there now says nothing then."""
    # a lone `mv a b` uses its paths before it renames anything
    return renames(text) and bool(_SEVERAL.search(text.strip()))
