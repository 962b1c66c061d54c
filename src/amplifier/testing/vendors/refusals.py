"""What becomes of refusals: each status is the right error, with the wait that the vendor asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from math import inf
from typing import ClassVar, Final

import anyio
import pytest

from amplifier.testing.transport import HttpAnswer
from amplifier.testing.vendors.playback import PlayedTests, in_virtual_time
from amplifier_sdk.errors import ConfigError, LLMError, RateLimitError

__all__ = ["STATUSES", "RefusalTests"]

STATUSES: Final[Mapping[int, tuple[str, bool]]] = {
    400: ("InvalidRequestError", False),
    401: ("AuthenticationError", False),
    402: ("QuotaExceededError", False),
    403: ("AccessDeniedError", False),
    404: ("NotFoundError", False),
    408: ("LLMTimeoutError", True),
    409: ("ProviderUnavailableError", True),
    413: ("ContextLengthError", False),
    422: ("InvalidRequestError", False),
    429: ("RateLimitError", True),
    500: ("ProviderUnavailableError", True),
    502: ("ProviderUnavailableError", True),
    503: ("ProviderUnavailableError", True),
    504: ("ProviderUnavailableError", True),
    529: ("ProviderUnavailableError", True),
}
"""The error's class, and whether it may pass, by status."""

_ORDINARY: Final = 1.0
_DAY: Final = 86_400.0
_ASKED: Final[Mapping[str, tuple[str, float]]] = {
    "seconds": ("3", 3.0),
    "float": ("2.5", 2.5),
    "nonsense": ("soon", _ORDINARY),
    "negative": ("-5", _ORDINARY),
    "not a number": ("nan", _ORDINARY),
    "a past date": ("Wed, 21 Oct 2015 07:28:00 GMT", _ORDINARY),
    "a day": ("86400", inf),
}


class RefusalTests(PlayedTests):
    """Refusals become the errors of the SDK."""

    statuses: ClassVar[Mapping[int, tuple[str, bool]]] = STATUSES

    @pytest.mark.parametrize("status", sorted(STATUSES))
    @in_virtual_time
    async def test_a_status_becomes_its_error(self, status: int) -> None:
        """With the vendor's JSON, with a gateway's page, and without a word."""
        name, may_pass = self.statuses[status]
        for body in (
            b'{"error": {"message": "No, thank you."}}',
            b"<html>No, thank you.</html>",
            b"",
            b"[1",
        ):
            provider, script = self.play(HttpAnswer(status=status, parts=(body,)))
            with pytest.raises(LLMError) as raised:
                await provider.complete(self.request())
            error = raised.value
            assert type(error).__name__ == name, f"{error!r}"
            assert error.retryable is may_pass
            assert (error.status_code, error.provider, error.model is not None) == (
                status,
                provider.name,
                True,
            )
            assert "thank" in str(error) or b"thank" not in body, (
                f"the vendor's words are not in {error}"
            )
            assert script.closed == [True]

    @pytest.mark.parametrize("asked", sorted(_ASKED))
    @in_virtual_time
    async def test_the_vendor_says_when_to_come_again(self, asked: str) -> None:
        """`Retry-After` is a floor; longer than `max_retry_delay` the request fails at once."""
        header, delay = _ASKED[asked]
        await self._asked(header, delay, delay)

    @in_virtual_time
    async def test_the_vendor_names_the_date_to_come_again(self) -> None:
        """A date is a wait until then."""
        # compared with the real clock, so that the wait is known within seconds
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
        await self._asked(date, 30.0, 40.0)

    async def _asked(self, header: str, minimum: float, maximum: float) -> None:
        refused = HttpAnswer(status=429, headers={"Retry-After": header})
        provider, script = self.play(
            refused, self.answer(self.text), max_retries=1, min_retry_delay=_ORDINARY
        )
        started = anyio.current_time()
        if minimum == inf:
            with pytest.raises(RateLimitError, match=f"{_DAY:,.0f} s"):
                await provider.complete(self.request())
            assert (anyio.current_time() - started, len(script.requests)) == (0.0, 1)
            return
        await provider.complete(self.request())
        assert minimum - 0.01 <= anyio.current_time() - started <= maximum + 0.01

    def test_a_missing_key_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without a key the provider is not mounted, and the error names the environment variable."""
        variable = self.provider.key_variable
        if variable is None or "api_key" not in self.config:
            pytest.skip("the vendor has no keys")
        monkeypatch.setenv(variable, "a-key-to-begin-with")
        # asked with a key in the environment: without one it may not be mounted
        if not self.play(api_key=None)[0].needs_key():
            pytest.skip("the vendor can do without a key")
        monkeypatch.delenv(variable)
        with pytest.raises(ConfigError, match=variable):
            self.play(api_key=None)

    @in_virtual_time
    async def test_the_key_is_taken_from_the_environment(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A key in the variable is sent."""
        variable = self.provider.key_variable
        if variable is None:
            pytest.skip("the vendor has no keys")
        monkeypatch.setenv(variable, "key-of-the-environment")
        provider, script = self.play(self.answer(self.text), api_key=None)
        await provider.complete(self.request())
        assert "key-of-the-environment" in json.dumps(
            list(script.requests[0].headers.values())
        )
