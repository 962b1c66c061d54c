"""Stored sessions behind HTTP: what `amplifier serve` runs.

Sessions, events and questions stand in a store, so that any server process answers for any of them. It needs the
extra `amplifier[server]`.
"""
