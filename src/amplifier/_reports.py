"""Redacts the kernel's reports from the moment that a name of this package is first used.

The kernel knows no rules of redaction; an application may choose another redactor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier.kernel.reports import redact_reports_by

if TYPE_CHECKING:
    from amplifier_sdk.redaction import Redactor


def _strict_redactor() -> Redactor:
    from amplifier_kit.redaction import StrictRedactor  # few processes report anything

    return StrictRedactor()


redact_reports_by(_strict_redactor, default=True)
