"""The names that the samples find: ours, the standard library's, and what each leaves to its reader."""

from __future__ import annotations

import hashlib
import logging
import os
import typing
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import amplifier
import amplifier_sdk

__all__ = ["names"]

_TYPING: Final = ("Any", "Protocol", "runtime_checkable")


def names(**own: object) -> SimpleNamespace:
    """Return every public name of `amplifier` and `amplifier_sdk`, and a sample's own."""
    public = {
        name: getattr(package, name)
        for package in (amplifier_sdk, amplifier)
        for name in package.__all__
    }
    standard = {
        "Callable": Callable,
        "Dict": dict,
        "List": list,
        "Path": Path,
        "hashlib": hashlib,
        "logger": logging.getLogger("sample"),
        "os": os,
        **{name: getattr(typing, name) for name in _TYPING},
    }
    # tests of samples run on both backends, whatever marker they carry
    marker = SimpleNamespace(mark=SimpleNamespace(asyncio=lambda test: test))
    return SimpleNamespace(**{**public, **standard, "pytest": marker, **own})
