"""The checks of a module package: what each holds to be true, and what the author does when it is not.

The behaviours of `amplifier.validation.behaviors` stand beside these; their ids follow the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier.validation.report import CheckResult

__all__ = ["CHECKS", "Check"]


@attrs.frozen
class Check:
    """One check.

    Args:
        id: stable between releases.
        says: what is true of a module that passes.
        fix: what the author does when it is not, unless the failure knows better.
    """

    id: str
    says: str
    fix: str

    def passed(self, message: str | None = None) -> CheckResult:
        """Report that it holds."""
        return CheckResult(check=self.id, status="passed", message=message or self.says)

    def error(
        self, message: str, *, fix: str | None = None, place: str | None = None
    ) -> CheckResult:
        """Report that it does not hold, and that the module cannot be used or published like this."""
        return CheckResult(
            check=self.id,
            status="error",
            message=message,
            fix=fix or self.fix,
            place=place,
        )

    def warning(
        self, message: str, *, fix: str | None = None, place: str | None = None
    ) -> CheckResult:
        """Report that it does not hold, though the module works."""
        return attrs.evolve(self.error(message, fix=fix, place=place), status="warning")

    def skipped(self, reason: str, *, fix: str | None = None) -> CheckResult:
        """Report that it could not be checked, and why."""
        return CheckResult(check=self.id, status="skipped", message=reason, fix=fix)


# A row: the id; what is true of a module that passes; what the author does when it is not.
# fmt: off
_ALL: Final = (
    Check("package.metadata",
        "pyproject.toml can be read and names the distribution.",
        "Write a [project] table with name, version and requires-python."),
    Check("package.build-system",
        "pyproject.toml says what builds the package.",
        'Add [build-system] with requires = ["hatchling"] and build-backend = "hatchling.build".'),
    Check("package.entry-points",
        "The distribution offers modules by entry points of the group amplifier.modules.",
        'Add [project.entry-points."amplifier.modules"] with a line: tool-days = "amplifier_module_tool_days:Days".'),
    Check("package.requires-amplifier",
        "The distribution requires amplifier.",
        'Add "amplifier" to the dependencies: whoever installs the module needs the SDK.'),
    Check("package.readme",
        "There is a README that the metadata names.",
        'Write README.md and set readme = "README.md".'),
    Check("package.tests",
        "There are tests.",
        "Write tests/test_conformance.py; `amplifier module new` shows one."),
    Check("module.id",
        "The id is lower-case words with hyphens and begins with the module's type.",
        "Name the entry point after its type: tool-…, provider-…, hooks-…, loop-… or context-…."),
    Check("module.names",
        "The distribution and the package are named after the module.",
        "Call the distribution amplifier-module-<id> and the package amplifier_module_<id>."),
    Check("module.layout",
        "The package that the entry point names is where an installer finds it.",
        "Put it under src/ and name it in the entry point."),
    Check("module.typed",
        "The package says that it is typed.",
        "Add an empty file py.typed beside the package's __init__.py."),
    Check("module.imports",
        "The package imports, and has what the entry point names.",
        "Import it with python -c 'import PACKAGE' and mend what that shows."),
    Check("module.type",
        "The module's type is known.",
        "Use a decorator of amplifier_sdk, declare __amplifier_module_type__, or begin the id with the type."),
    Check("module.mountable",
        "What the entry point names can be mounted: a mount function, a hook implementation, or the SDK's own.",
        "Write 'async def mount(coordinator, config)', or use a decorator of amplifier_sdk."),
    Check("module.on-session-ready",
        "on_session_ready, where there is one, is async.",
        "Write it as 'async def on_session_ready(coordinator)'; a sync one is never called."),
    Check("module.mounting",
        "It mounts, and what it mounts has every member of its contract.",
        "Return an instance that satisfies the contract from mount."),
    Check("module.configuration",
        "A configuration key that it does not know is refused by name.",
        "Read the configuration into an attrs class: annotate the parameter 'config' with it."),
    Check("module.cleanup",
        "When the session ends nothing is left of it: no thread, task, open file or process.",
        "Release what it holds in aclose, or return a cleanup function from mount."),
    Check("module.events",
        "The events of its own that it emits are declared on the channel observability.events, and no others.",
        "Contribute their names: coordinator.register_contributor('observability.events', id, lambda: [...])."),
    Check("module.stdout",
        "It prints nothing on standard output, which is the application's.",
        "Log with structlog or logging, or show a message through a hook's result."),
    Check("module.process",
        "The process in which it runs stays alive and answers in time.",
        "Do not end the process, and do not block the event loop."),
    Check("module.samples",
        "What pyproject.toml says about the module for its behaviours can be read.",
        "Correct samples and leave_out in [tool.amplifier.validate.<id>]; the documentation of conformance "
        "names them."),
    Check("tool.name",
        "Every tool has a name that the vendors' models can call: 1 to 64 letters, digits, _ and -.",
        "Rename the tool, in snake_case."),
    Check("tool.description",
        "Every tool says what it does.",
        "Write a docstring, or a description: the model chooses by it."),
    Check("tool.schema",
        "Every tool's input schema is a valid JSON Schema (2020-12) of an object, and describes its properties.",
        "Return {'type': 'object', 'properties': {…}} as input_schema; @tool makes it from the signature."),
    Check("hook.handlers",
        "Every handler can be called with an event's name and its data.",
        "Write handlers as 'async def handler(event, data)'."),
    Check("provider.info",
        "get_info names the provider, without network.",
        "Return a ProviderInfo with id and display_name."),
)
# fmt: on

CHECKS: Final[Mapping[str, Check]] = {check.id: check for check in _ALL}
"""Every check by its id, in the order of a report."""
