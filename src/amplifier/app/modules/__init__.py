"""Modules as a person asks for them: which there are, which layer each comes from, and what keeps it as it is."""
