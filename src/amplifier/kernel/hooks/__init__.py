"""Hooks: who hears an event, what they decide together, and what is asked of the person."""
