"""The logs of sessions: found, read from either end, selected, followed, counted."""
