"""Bundles: files that say what a session is made of by including one another."""
