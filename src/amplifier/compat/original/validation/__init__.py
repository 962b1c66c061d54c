"""Validators of modules: each mounts the module on a coordinator of its own and checks what that mounted."""

from __future__ import annotations

from amplifier.compat.original.validation.base import ValidationCheck, ValidationResult
from amplifier.compat.original.validation.mount_plan import (
    MountPlanValidationResult,
    MountPlanValidator,
)
from amplifier.compat.original.validation.validators import (
    ContextValidator,
    HookValidator,
    OrchestratorValidator,
    ProviderValidator,
    ToolValidator,
)

__all__ = [
    "ContextValidator",
    "HookValidator",
    "MountPlanValidationResult",
    "MountPlanValidator",
    "OrchestratorValidator",
    "ProviderValidator",
    "ToolValidator",
    "ValidationCheck",
    "ValidationResult",
]
