"""The README of provider-ollama lists the settings that are its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.vendors import VendorConfig
from amplifier_module_provider_ollama import OllamaConfig

README: Final = (
    Path(__file__).resolve().parents[2]
    / "plugins"
    / "amplifier-module-provider-ollama"
    / "README.md"
)


def test_every_setting_of_its_own_is_listed_and_no_other() -> None:
    cells = [
        line.split("|")[1]
        for line in README.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    known = set(attrs.fields_dict(OllamaConfig))

    assert known - set(attrs.fields_dict(VendorConfig)) < listed
    assert listed <= known
