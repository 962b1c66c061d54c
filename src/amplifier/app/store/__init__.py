"""Sessions on disk: who they are, what was said, what a turn was doing when it ended, and finding them again."""
