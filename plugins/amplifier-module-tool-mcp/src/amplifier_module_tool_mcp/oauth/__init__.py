"""Signing in to servers at an address: OAuth 2.1, as the protocol's authorization asks for it."""
