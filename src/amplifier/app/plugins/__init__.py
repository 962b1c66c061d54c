"""Plugins in the shape that Claude Code gave them: fetched, shown by what they may do, and used once agreed to."""
