"""Base classes of tests: a module passes its type's validator. A module's tests inherit the one of its type."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from amplifier.compat.original.validation.portal import Portal
from amplifier.compat.original.validation.validators import (
    ContextValidator,
    HookValidator,
    OrchestratorValidator,
    ProviderValidator,
    ToolValidator,
    Validator,
)

__all__ = [
    "ContextStructuralTests",
    "HookStructuralTests",
    "OrchestratorStructuralTests",
    "ProviderStructuralTests",
    "ToolStructuralTests",
]


class _StructuralTests:
    validator: ClassVar[type[Validator]]
    portal: Portal

    @pytest.fixture(autouse=True)
    def _in_portal(self, original_portal: Portal) -> None:
        self.portal = original_portal

    def test_structural_validation(self, module_path: Path | None) -> None:
        """The module passes its type's validator."""
        if module_path is None:
            pytest.skip("the tests lie in no module's project")
        result = self.portal.call(self.validator().validate, module_path)
        assert result.passed, "; ".join(each.message for each in result.errors)


class ToolStructuralTests(_StructuralTests):
    """Tests of a tool."""

    validator: ClassVar[type[Validator]] = ToolValidator


class ProviderStructuralTests(_StructuralTests):
    """Tests of a provider."""

    validator: ClassVar[type[Validator]] = ProviderValidator


class HookStructuralTests(_StructuralTests):
    """Tests of a hook."""

    validator: ClassVar[type[Validator]] = HookValidator


class OrchestratorStructuralTests(_StructuralTests):
    """Tests of an orchestrator."""

    validator: ClassVar[type[Validator]] = OrchestratorValidator


class ContextStructuralTests(_StructuralTests):
    """Tests of a context manager."""

    validator: ClassVar[type[Validator]] = ContextValidator
