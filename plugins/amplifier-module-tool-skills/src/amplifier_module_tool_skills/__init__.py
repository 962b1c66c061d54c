"""The tool module `tool-skills`: instructions for special tasks, which a model loads when it needs them."""

from __future__ import annotations

from amplifier_module_tool_skills.config import SkillsConfig, Visibility
from amplifier_module_tool_skills.skills import Skills

__all__ = ["Skills", "SkillsConfig", "Visibility"]
