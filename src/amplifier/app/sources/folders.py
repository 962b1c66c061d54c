"""Module sources that are folders: what a plan's `source` names on this machine.

```yaml
tools:
  - module: tool-notes
    source: ./tool-notes
```
"""

from __future__ import annotations

from pathlib import Path

import attrs

from amplifier.app.sources.locations import path_of
from amplifier_sdk.errors import ModuleNotFoundError

__all__ = ["FolderResolver", "FolderSource"]


@attrs.frozen(kw_only=True)
class FolderSource:
    """A folder with a module's code: a project, or the package itself."""

    module_id: str
    path: Path

    def resolve(self) -> Path:
        """Return the folder.

        Raises:
            ModuleNotFoundError: there is no such folder.
        """
        if not self.path.is_dir():
            raise ModuleNotFoundError(self.module_id, f"its source {str(self.path)!r} is no folder")
        return self.path


@attrs.frozen
class FolderResolver:
    """Takes sources that are folders, and leaves every other module to what is installed.

    Args:
        base: what relative paths are relative to.
    """

    base: Path

    def resolve(self, module_id: str, source_hint: object = None) -> FolderSource:
        """Return the source of a module whose `source` is a path, a `file:` URL or a path object.

        Raises:
            ModuleNotFoundError: the plan names no source, or one that is no path.
        """
        path = path_of(source_hint)
        if path is None:
            what = "the plan names no source" if source_hint is None else f"the source {source_hint!r} is no path"
            raise ModuleNotFoundError(module_id, f"{what}; a folder can be named as 'source'")
        return FolderSource(module_id=module_id, path=self.base / path)
