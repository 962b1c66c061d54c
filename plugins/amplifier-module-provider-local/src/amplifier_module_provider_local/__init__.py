"""The provider module `provider-local`: a small embedded model that needs no key and no configuration."""

from __future__ import annotations

from amplifier_module_provider_local.config import LocalConfig
from amplifier_module_provider_local.provider import LocalProvider

__all__ = ["LocalConfig", "LocalProvider"]
