"""Modules: finding them, importing them, making each a plugin, and where each is mounted."""
