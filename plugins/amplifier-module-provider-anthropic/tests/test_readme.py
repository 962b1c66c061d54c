"""The README's tables say what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.vendors import VendorConfig
from amplifier_module_provider_anthropic import AnthropicConfig, Model

README: Final = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
ROW: Final = re.compile(r"^\| `(\w+)` \| ([^|]+) \|", re.MULTILINE)
WORDS: Final = {"true": True, "false": False, "none": None}


def _of_all_vendors() -> set[str]:
    return {field.name for field in attrs.fields(VendorConfig)}


def test_every_option_stands_in_the_table_with_its_default() -> None:
    own = [
        field
        for field in attrs.fields(AnthropicConfig)
        if field.name not in _of_all_vendors()
    ]
    listed = {key: default.strip().strip("`") for key, default in ROW.findall(README)}

    assert list(listed) == [field.name for field in own]
    for field in own:
        if isinstance(field.default, (bool, int, float, str)):
            assert WORDS.get(listed[field.name], listed[field.name]) in (
                field.default,
                f"{field.default:g}"
                if isinstance(field.default, float)
                else str(field.default),
            ), field.name


def test_the_example_of_a_model_has_all_that_is_known_of_one() -> None:
    example = README.split("  my-model:\n")[1].split("```")[0]

    assert re.findall(r"^    (\w+):", example, re.MULTILINE) == [
        field.name for field in attrs.fields(Model) if field.name != "display_name"
    ]
