"""Providers as a person looks at them: which there are, whether their keys are there, what they offer."""
