"""Profiles: Markdown files that say what a session is made of and what the agent is told."""
