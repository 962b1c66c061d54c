"""The tool module `tool-web`: fetch public web pages as Markdown, and search the web."""

from __future__ import annotations

from amplifier_module_tool_web.config import WebConfig
from amplifier_module_tool_web.web import Web

__all__ = ["Web", "WebConfig"]
