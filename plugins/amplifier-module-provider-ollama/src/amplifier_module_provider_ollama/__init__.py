"""Models that an Ollama server runs, through Ollama's own API."""

from __future__ import annotations

from amplifier_module_provider_ollama.config import OllamaConfig
from amplifier_module_provider_ollama.provider import OllamaProvider

__all__ = ["OllamaConfig", "OllamaProvider"]
