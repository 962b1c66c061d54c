"""Files: paths that stay where they may, private and atomic writes, locks, text, and documents that people write."""
