"""The trace page of a session: what its log has, as one page that a browser shows without asking any host."""
