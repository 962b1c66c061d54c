"""The page that lists the SDK's public surface lists all of it, and each class has a name of its own."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from inspect import isclass
from types import ModuleType
from typing import Final

import pytest

import amplifier_sdk
from amplifier_sdk import events
from tests.architecture.source_tree import ROOT, root_files

PAGE: Final = (ROOT / "docs" / "reference" / "sdk.md").read_text("utf-8")
MODULES: Final = tuple(
    import_module(file.module)
    for file in root_files()
    if file.is_public and file.module.startswith("amplifier_sdk.")
)


def _listed() -> dict[str, list[str]]:
    """Return the names that the page lists, by the module under whose heading they stand."""
    sections = re.split(r"^## `([\w.]+)`$", PAGE, flags=re.MULTILINE)[1:]
    return {
        module: re.findall(r"^(?:\*\*)?`\w+`.*$", text, re.MULTILINE)
        for module, text in zip(sections[::2], sections[1::2], strict=True)
    }


def test_the_page_lists_every_public_module() -> None:
    assert list(_listed()) == [module.__name__ for module in MODULES]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_page_lists_every_public_name(module: ModuleType) -> None:
    names = [
        f"**`{name}`**" if name in amplifier_sdk.__all__ else f"`{name}`"
        for name in getattr(module, "__all__", [])
    ]

    assert _listed()[module.__name__] == ([", ".join(names)] if names else [])


def test_a_public_class_has_a_name_of_its_own() -> None:
    defined = {
        value
        for module in MODULES
        for value in vars(module).values()
        if isclass(value) and _is_public(value)
    }
    counts = Counter(cls.__name__ for cls in defined)

    assert [name for name, count in counts.items() if count > 1] == []


def _is_public(cls: type) -> bool:
    return cls.__module__.startswith("amplifier_sdk.") and not cls.__name__.startswith(
        "_"
    )


def test_no_payload_is_named_like_an_exception() -> None:
    payloads = [
        name
        for name, value in vars(events).items()
        if isclass(value) and issubclass(value, dict)
    ]

    assert "ProviderErrorPayload" in payloads
    assert [
        name for name in payloads if name.endswith(("Error", "Exception", "Warning"))
    ] == []
