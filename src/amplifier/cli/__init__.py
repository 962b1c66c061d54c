"""The command line: it parses what a person typed and renders what happens. Policy is in `amplifier.app`."""

from __future__ import annotations

from amplifier.cli._root import main

__all__ = ["main"]
