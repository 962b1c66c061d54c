"""What a child Python imports as `amplifier_core`: it makes room for what `amplifier.compat` provides.

The folder of this file is on the `PYTHONPATH` of child processes alone. In an environment without Amplifier it
steps aside, and whatever is installed there under the name is imported.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

__all__: list[str] = []

_HERE = str(Path(__file__).parent)

if __name__ == "amplifier_core":
    del sys.modules[__name__]
    if find_spec("amplifier") is None:
        sys.path[:] = [path for path in sys.path if path != _HERE]
    else:
        import_module("amplifier.compat").install()
    import_module("amplifier_core")
