"""What context managers share that keep every message and show a model what fits.

`CompactingContext` is the context itself, in memory; a subclass stores its messages elsewhere as well.
`CompactionOptions` are its settings, which a module's own configuration class extends.
"""

from __future__ import annotations

from amplifier_kit.compaction.contexts import CompactingContext
from amplifier_kit.compaction.options import CompactionOptions

__all__ = ["CompactingContext", "CompactionOptions"]
