"""The module has every behaviour of its type."""

from __future__ import annotations

from amplifier.testing.conformance import ToolSamples, conformance
from amplifier_kit.trust import PROJECT_FILES
from amplifier_module_tool_skills import Skills

SKILL = "---\nname: tides\ndescription: Tells the tides.\n---\nLook at the moon.\n"

TestSkills = conformance(
    "tool",
    Skills,
    config={"untrusted": "mark"},
    samples=ToolSamples(
        bad_config={"pin_characters": -1},
        files={f"{PROJECT_FILES['skills'][0]}/tides/SKILL.md": SKILL},
        arguments={
            "load_skill": (
                {"list": True},
                {"search": "moon"},
                {"info": "tides"},
                {"skill_name": "tides", "offset": 5},
            )
        },
        failing={
            "load_skill": (
                {},
                {"skill_name": "tide"},
                {"skill_name": "tides", "file": "../../../secret"},
                {"info": "/etc/passwd"},
            )
        },
    ),
)
