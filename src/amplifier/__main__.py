"""`python -P -m amplifier` is the command `amplifier`.

Without `-P` Python imports what it needs to find this file from the working directory, which nothing here can prevent.
"""

from __future__ import annotations

import os
import sys

# Python puts the working directory first: a project's file would take the place of a module that is imported later.
_HERE = os.getcwd()
if os.path.dirname(os.path.dirname(os.path.abspath(__file__))) != _HERE:
    sys.path[:] = [path for path in sys.path if path and os.path.abspath(path) != _HERE]

from amplifier.cli import main  # noqa: E402  # after the path is what it should be

if __name__ == "__main__":
    main(prog_name="amplifier")
