"""Mount plans: what a session is made of, its keys, its schema, and one plan laid over another."""
