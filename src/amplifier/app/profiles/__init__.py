"""Profiles and bundles: files that say what a session is made of, and build on others."""
