"""`python -m amplifier`: the command line."""

from __future__ import annotations

from amplifier.cli import main

if __name__ == "__main__":
    main()
