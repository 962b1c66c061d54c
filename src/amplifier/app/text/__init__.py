"""Texts for people and models: figures, values, blocks."""
