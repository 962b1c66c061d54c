"""Collections that can be installed by their name alone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Self

import attrs

from amplifier.app.settings.settings import Settings
from amplifier.app.sources.requirements import canonical_name
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean

__all__ = ["Catalogue"]


@attrs.frozen
class Catalogue:
    """Where collections come from, by name."""

    sources: Mapping[str, str]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the names that come along, with those of the settings over them."""
        folder = Path(str(files("amplifier"))) / "collections" / "_catalogue"
        bundled = {path.name: str(path) for path in sorted(folder.iterdir()) if path.is_dir()}
        named = settings.read().collections.catalogue
        return cls({**bundled, **{canonical_name(name): source for name, source in named.items()}})

    def find(self, name: str) -> str | None:
        """Return the source of a collection; `None` where it is not known."""
        return self.sources.get(canonical_name(name))

    def require(self, name: str) -> str:
        """Return the source of a collection.

        Raises:
            ConfigError: it is not known; names the nearest.
        """
        source = self.find(name)
        if source is None:
            known = ", ".join(sorted(self.sources))
            hint = did_you_mean(name, list(self.sources)) or f"; known: {known}"
            remedy = "give its folder, archive or repository, or name it in the setting collections.catalogue"
            raise ConfigError([Problem(name, f"no such collection{hint}; {remedy}")], subject="catalogue")
        return source
