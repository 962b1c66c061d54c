"""The trace page of a session: what its log tells as one page that a browser shows without asking any host."""
