"""Agents: the files that define them, and what a project's may say."""
