"""HTTP: connections to allowed addresses alone, server-sent events, and searches of the web."""
