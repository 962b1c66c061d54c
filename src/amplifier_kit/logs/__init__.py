"""Log files of sessions: what one record is, and how its file is opened, rotated and read."""
