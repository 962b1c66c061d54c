"""Providers of Amplifier's own that are not installed: what each needs, and installing one."""

from __future__ import annotations

import os
import site
import sysconfig
from collections.abc import Collection, Mapping
from typing import Final

import attrs

from amplifier.app.sources.installers import find_installer
from amplifier.kernel.modules.sources import installed_modules
from amplifier_kit.installation import install_command

__all__ = ["InstallableProvider", "installable_providers"]

_KEYS: Final[Mapping[str, str | None]] = {
    "provider-anthropic": "ANTHROPIC_API_KEY",
    "provider-openai": "OPENAI_API_KEY",
    "provider-azure-openai": "AZURE_OPENAI_API_KEY",
    "provider-chat-completions": None,
    "provider-ollama": None,
    "provider-local": None,
}
"""The providers that are published with Amplifier, and the variable of the key that each asks for."""


@attrs.frozen(kw_only=True)
class InstallableProvider:
    """A provider that can be installed.

    Args:
        module: its id.
        variable: the variable of its key; `None` where it needs none.
        has_key: whether that is set.
    """

    module: str
    variable: str | None = None
    has_key: bool = False

    @property
    def requirement(self) -> str:
        """The name of its distribution."""
        return f"amplifier-module-{self.module}"

    @property
    def command(self) -> str:
        """What a person would type to install it."""
        return install_command(self.requirement)

    def install(self) -> None:
        """Install it into this interpreter's environment, so that it can be used at once; the function blocks.

        Raises:
            FetchError: it cannot be fetched, or the installer says why it failed.
            AmplifierError: there is nothing that it could be installed from.
        """
        find_installer().install_own(self.requirement)
        # What is installed from a clone is found by a file that is read when Python starts.
        site.addsitedir(sysconfig.get_path("purelib"))
        installed_modules(refresh=True)


def installable_providers(installed: Collection[str]) -> list[InstallableProvider]:
    """Return the providers that are not installed, those whose key is set first.

    Args:
        installed: the ids of the modules that are.
    """
    found = [
        InstallableProvider(
            module=module,
            variable=variable,
            has_key=bool(variable and os.environ.get(variable)),
        )
        for module, variable in _KEYS.items()
        if module not in installed
    ]
    return sorted(found, key=lambda each: not each.has_key)
