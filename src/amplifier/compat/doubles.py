"""What doubles of the original's classes need: they have what the class itself has."""

from __future__ import annotations

__all__ = ["InstanceAttribute"]


class InstanceAttribute:
    """Stands in a class for an attribute that each instance sets, so that `Mock(spec=…)` of the class has it."""

    def __get__(self, instance: object, owner: type) -> InstanceAttribute:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__!r} object has not set it yet")
