"""Where the kernel's own reports go."""

from __future__ import annotations

import sys

import pytest
import structlog

from amplifier import HookRegistry
from amplifier.kernel import reports as kernel_reports
from amplifier.kernel.reports import configure_reports_by, redact_reports_by
from amplifier_kit.redaction import StrictRedactor
from amplifier_sdk.jsontypes import JSONValue


def fail(event: str, data: dict[str, object]) -> None:
    raise ValueError("out of order")


async def test_without_any_config_report_goes_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    structlog.reset_defaults()
    hooks = HookRegistry()
    hooks.register("x", fail)

    await hooks.emit("x", {})

    output = capsys.readouterr()
    assert output.out == ""
    assert "hook.failed" in output.err
    assert "ValueError: out of order" in output.err


async def test_a_report_shows_no_values_of_local_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail_with_key(event: str, data: dict[str, object]) -> None:
        key = f"sk-{12345}"
        raise ValueError(f"a key of {len(key)} characters")

    structlog.reset_defaults()
    hooks = HookRegistry()
    hooks.register("x", fail_with_key)

    await hooks.emit("x", {})

    output = capsys.readouterr().err
    assert "in fail_with_key" in output
    assert "sk-12345" not in output


async def test_a_report_shows_no_secrets_of_an_errors_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    backwards = "5Az3Yx1Wv9Ut7Sr5Qp3Nm1Lk9Jh7Gf5Ed3Ba_phg"

    def refuse(event: str, data: dict[str, object]) -> None:
        raise ValueError(f"refused: {backwards[::-1]}")  # the traceback shows this line

    structlog.reset_defaults()
    hooks = HookRegistry()
    hooks.register("x", refuse)

    await hooks.emit("x", {})

    output = capsys.readouterr().err
    assert "refused: [REDACTED:github-token]" in output
    assert "aB3dE5fG7hJ9" not in output


class Broken:
    """A redactor that fails."""

    def redact_text(self, text: str, /) -> str:
        raise LookupError(text)

    def redact(self, value: JSONValue, /) -> JSONValue:
        raise LookupError(value)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(None, "nothing redacts reports"), (Broken, "the redactor failed, LookupError")],
    ids=["none", "failing"],
)
async def test_what_nothing_redacts_is_withheld(
    make: type[Broken] | None,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(kernel_reports, "_make_redactor", None)  # restored afterwards
    redact_reports_by(make)
    structlog.reset_defaults()
    hooks = HookRegistry()
    hooks.register("x", fail)

    await hooks.emit("x", {})

    assert (
        capsys.readouterr().err == f"hook.failed (the details are withheld: {reason})\n"
    )


async def test_a_default_replaces_no_redactor_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel_reports, "_make_redactor", None)  # restored afterwards
    redact_reports_by(Broken)
    redact_reports_by(StrictRedactor, default=True)
    structlog.reset_defaults()
    hooks = HookRegistry()
    hooks.register("x", fail)

    await hooks.emit("x", {})

    assert "the redactor failed" in capsys.readouterr().err


async def test_application_that_configured_structlog_gets_reports(
    reports: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = HookRegistry()
    hooks.register("x", fail)

    await hooks.emit("x", {})

    assert [
        (report["event"], report["log_level"], report["handler"]) for report in reports
    ] == [("hook.failed", "warning", "fail")]
    assert capsys.readouterr() == ("", "")


async def test_what_configures_the_log_is_called_once_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[str] = []
    monkeypatch.delitem(sys.modules, "structlog")

    configure_reports_by(lambda: called.append("unused"))
    configure_reports_by(lambda: called.append("configured"))
    assert called == []
    kernel_reports.report("x")
    kernel_reports.report("y")
    assert called == ["configured"]

    configure_reports_by(lambda: called.append("loaded already"))
    assert called == ["configured", "loaded already"]
