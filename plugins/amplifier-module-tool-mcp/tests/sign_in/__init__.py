"""Signing in to servers."""
