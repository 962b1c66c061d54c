"""The check of a mount plan, without loading what it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from amplifier.compat.original.validation.base import Checks, ValidationCheck

__all__ = ["MountPlanValidationResult", "MountPlanValidator"]


@dataclass
class MountPlanValidationResult(Checks):
    """All checks of one plan."""

    checks: list[ValidationCheck] = field(default_factory=list)

    def format_errors(self) -> str:
        """Write the errors, a line each."""
        if self.passed:
            return "No errors"
        return "\n".join(f"[{each.name}] {each.message}" for each in self.errors)


class MountPlanValidator:
    """Finds what is wrong with a plan. A module of the session is a mapping or its id alone, as sessions accept it."""

    REQUIRED_SECTIONS: ClassVar[set[str]] = {"session"}
    REQUIRED_SESSION_FIELDS: ClassVar[set[str]] = {"context", "orchestrator"}
    OPTIONAL_SECTIONS: ClassVar[set[str]] = {"agents", "hooks", "providers", "tools"}
    REQUIRED_MODULE_SPEC_FIELDS: ClassVar[set[str]] = {"module"}

    def validate(self, mount_plan: object) -> MountPlanValidationResult:
        """Return every check of a plan."""
        if not isinstance(mount_plan, Mapping):
            problem = f"Mount plan must be a dict, got {type(mount_plan).__name__}"
            return MountPlanValidationResult([_failed("root_type", problem)])
        return MountPlanValidationResult(
            [
                _passed("root_type"),
                *self._session(mount_plan),
                *self._sections(mount_plan),
            ]
        )

    def _session(self, plan: Mapping[str, object]) -> Iterator[ValidationCheck]:
        if "session" not in plan:
            yield _failed("session_present", "Mount plan has no 'session' section")
            return
        yield _passed("session_present")
        session = plan["session"]
        if not isinstance(session, Mapping):
            problem = f"Session section must be a dict, got {type(session).__name__}"
            yield _failed("session_type", problem)
            return
        for name in sorted(self.REQUIRED_SESSION_FIELDS):
            if name not in session:
                problem = f"Session section has no {name!r}"
                yield _failed(f"session_{name}_present", problem)
            elif isinstance(session[name], str):
                yield _module_check(f"session.{name}", session[name])
            else:
                yield from self._spec(f"session.{name}", session[name])

    def _sections(self, plan: Mapping[str, object]) -> Iterator[ValidationCheck]:
        known = self.REQUIRED_SECTIONS | self.OPTIONAL_SECTIONS
        # where a module of the session is an id, its configuration stands there
        unknown = sorted(map(str, plan.keys() - known - self.REQUIRED_SESSION_FIELDS))
        if unknown:
            problem = f"Unknown sections are ignored: {unknown}"
            yield ValidationCheck(
                "unknown_sections", passed=False, message=problem, severity="warning"
            )
        for section in sorted(self.OPTIONAL_SECTIONS - {"agents"}):
            if section not in plan:
                continue
            entries = plan[section]
            if not isinstance(entries, list):
                problem = f"{section!r} must be a list, got {type(entries).__name__}"
                yield _failed(f"{section}_type", problem)
            elif not entries:
                yield _passed(f"{section}_empty")
            else:
                for index, entry in enumerate(entries):
                    yield from self._spec(f"{section}[{index}]", entry)

    def _spec(self, path: str, spec: object) -> Iterator[ValidationCheck]:
        if not isinstance(spec, Mapping):
            problem = f"Module spec at {path} must be a dict, got {type(spec).__name__}"
            yield _failed(f"{path}_type", problem)
            return
        if "module" not in spec:
            problem = f"Module spec at {path} has no 'module'"
            yield _failed(f"{path}_module_required", problem)
            return
        yield _module_check(path, spec["module"])
        if not isinstance(spec.get("config") or {}, Mapping):
            yield _failed(f"{path}_config_type", f"'config' at {path} must be a dict")
        if not isinstance(spec.get("source") or "", str):
            yield _failed(f"{path}_source_type", f"'source' at {path} must be text")


def _module_check(path: str, module: object) -> ValidationCheck:
    if not isinstance(module, str):
        problem = f"'module' at {path} must be text, got {type(module).__name__}"
        return _failed(f"{path}_module_type", problem)
    if not module.strip():
        return _failed(f"{path}_module_empty", f"'module' at {path} cannot be empty")
    return _passed(f"{path}_module_valid")


def _passed(name: str) -> ValidationCheck:
    return ValidationCheck(name, passed=True, message=f"{name}: ok", severity="info")


def _failed(name: str, problem: str) -> ValidationCheck:
    return ValidationCheck(name, passed=False, message=problem)
