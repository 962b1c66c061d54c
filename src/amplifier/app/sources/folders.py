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

from amplifier_sdk.errors import ModuleNotFoundError

__all__ = ["FolderSource"]


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
