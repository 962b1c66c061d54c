"""Providers as they are shown to a person: which there are, whether their keys are there, what they offer."""
