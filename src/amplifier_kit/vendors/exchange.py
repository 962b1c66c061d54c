"""One answer: tries, waits, deadlines, events, and what the reader makes of what arrives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, cast

import anyio
import attrs

from amplifier_kit.http.sse import ServerEvent
from amplifier_kit.media.counts import fit_images
from amplifier_kit.media.support import MediaLimits, has_media
from amplifier_kit.quotas import PAUSES, PauseReader
from amplifier_kit.vendors.reports import ExchangeReport, report_retry
from amplifier_kit.vendors.request import Outgoing
from amplifier_kit.vendors.retries import Try, tries
from amplifier_kit.vendors.slots import SIGN_OF_LIFE
from amplifier_sdk.chat import ChatRequest, ChatResponse, Degradation
from amplifier_sdk.errors import InvalidRequestError, LLMError
from amplifier_sdk.events import (
    PROVIDER_TOOL_SEQUENCE_REPAIRED,
    ProviderToolSequenceRepaired,
)
from amplifier_sdk.history import sendable
from amplifier_sdk.streaming import Delta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from amplifier_kit.vendors.provider import VendorProvider

__all__ = ["Answering"]

_MEDIA_WORDS: Final = ("image", "audio", "document", "file", "pdf", "media", "modal")


@attrs.define(eq=False)
class Answering:
    """The answer to one request of one provider."""

    provider: VendorProvider
    request: ChatRequest
    _model: str | None = attrs.field(default=None, init=False)
    _index: int = attrs.field(default=0, init=False)
    _is_shown: bool = attrs.field(default=False, init=False)

    async def deltas(self) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Yield the answer; failures are retried as long as nothing of it was shown.

        Raises:
            LLMError: it cannot be had; the error names the provider and the model.
        """
        provider = self.provider
        try:
            self._model = model = provider.model_of(self.request)
            await self._prepare()
            losses = await self._fit_media(model)
            outgoing = provider.complete_outgoing(provider.write(self.request, model))
            if losses:
                losses += filter(None, [outgoing.degradation])
                outgoing = attrs.evolve(
                    outgoing, degradation=Degradation.of_all(losses)
                )
        except LLMError as error:
            provider.name_error(error, self._model)
            raise
        attempts = tries(provider.config)
        while True:
            attempt = next(attempts)
            async with aclosing(self._wait(attempt)) as signs:
                async for _ in signs:
                    yield self._alive()
            try:
                async with aclosing(self._exchange(outgoing, model)) as items:
                    async for item in items:
                        yield item
                return
            except LLMError as error:
                # what was shown cannot be taken back, so a second answer would
                # stand behind half a one
                if self._is_shown:
                    raise
                attempt.fail(error)
            finally:
                # also when the receiver stops reading: `finally` runs as the
                # generator closes
                provider.slots.give_back()

    async def _prepare(self) -> None:
        """Fill in what the request leaves open, and mend its history."""
        config, request = self.provider.config, self.request
        # a call without a result, as after a crash, makes every vendor refuse the
        # request
        history = sendable(request.messages)
        self.request = attrs.evolve(
            request,
            messages=history.messages,
            temperature=config.temperature
            if request.temperature is None
            else request.temperature,
            max_output_tokens=config.max_tokens
            if request.max_output_tokens is None
            else request.max_output_tokens,
        )
        hooks = self.provider.coordinator.hooks
        if history.findings and hooks.has_handlers(PROVIDER_TOOL_SEQUENCE_REPAIRED):
            said = ProviderToolSequenceRepaired(
                provider=self.provider.mounted_name,
                repair_count=len(history.findings),
                repairs=[finding.to_dict() for finding in history.findings],
            )
            await hooks.emit(PROVIDER_TOOL_SEQUENCE_REPAIRED, said)

    async def _fit_media(self, model: str) -> list[Degradation]:
        """Put texts in place of media that the model does not take, and of the oldest images where there are too many.

        Raises:
            InvalidRequestError: the prompt shows what the model does not take.
        """
        if not has_media(self.request.messages):
            return []
        provider, config = self.provider, self.provider.config
        taken: Collection[str] = provider.media
        if config.media is None:
            taken = await provider.media_of(model)
        limits = MediaLimits(
            model=model,
            taken=frozenset(taken),
            has_text_documents=provider.has_text_documents,
            fetched=provider.fetched_media,
            degrade=config.degrade,
        )
        fitted = limits.fit(self.request.messages)
        self.request = attrs.evolve(self.request, messages=fitted.messages)
        return [*fitted.losses, *filter(None, [self._fit_images()])]

    def _fit_images(self) -> Degradation | None:
        """Leave out the oldest images of a request that has more than the configuration allows."""
        config = self.provider.config
        if not config.max_images:
            return None
        fitted = fit_images(
            self.request.messages,
            max_images=config.max_images,
            max_characters=config.max_image_bytes,
        )
        if not fitted.left_out:
            return None
        self.request = attrs.evolve(self.request, messages=fitted.messages)
        return Degradation(
            requested="images",
            actual=f"{fitted.left_out} of them as a text that says so",
            reason=f"a request has at most {config.max_images} images and {config.max_image_bytes} bytes of them",
        )

    async def _wait(self, attempt: Try) -> AsyncGenerator[None, None]:
        """Wait as long as a try must, and then for its slot; while this lives something is yielded now and then."""
        if attempt.error is not None:
            await report_retry(self.provider, attempt, attempt.error, self._model)
            end = anyio.current_time() + attempt.delay
            # in slices, so that whoever watches for silence sees that this lives
            while (left := end - anyio.current_time()) > SIGN_OF_LIFE:
                await anyio.sleep(SIGN_OF_LIFE)
                yield
            await anyio.sleep(max(0.0, left))
            async with aclosing(self._pause()) as signs:
                async for _ in signs:
                    yield
        async with aclosing(self.provider.slots.take()) as turns:
            async for _ in turns:
                yield

    async def _pause(self) -> AsyncGenerator[None, None]:
        """Wait for as long as other processes were asked to wait meanwhile."""
        provider = self.provider
        found = provider.coordinator.get_capability(PAUSES)
        if found is None:
            return
        read = cast("PauseReader", found)
        while (left := await read(provider.account)) > 0:
            await anyio.sleep(min(left, SIGN_OF_LIFE))
            yield

    async def _exchange(
        self, outgoing: Outgoing, model: str
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Send the request and read the answer, and tell of both."""
        provider = self.provider
        report = ExchangeReport(provider, model)
        try:
            await report.begin(self.request, outgoing.body)
            reader = provider.reader(self.request, model)
            events = provider.events(
                outgoing,
                timeout=self.request.timeout,
                heard=report.heard,
                is_over=lambda: reader.is_ended,
            )
            async with aclosing(events):
                async for event in events:
                    is_silent = True
                    if isinstance(event, ServerEvent):
                        if report.keeps:
                            report.received(event.data)
                        for delta in reader.feed(event):
                            self._index = delta.index
                            if isinstance(delta, ToolCallDelta) or delta.text:
                                self._is_shown = True
                            is_silent = False
                            yield delta
                    if is_silent:
                        yield self._alive()
            response = await self._finished(reader.finish(), outgoing, model)
        except BaseException as error:
            if isinstance(error, LLMError):
                provider.name_error(error, model)
                # vendors refuse images in words of their own; the remedy is the
                # same for all
                if has_media(self.request.messages) and _refuses_media(error):
                    # some servers call it a failure of their own
                    error.retryable = False
                    error.args = (
                        f"{error}; say with the provider's `media` what the model takes, `media: []` for text alone",
                    )
            await report.end(error)
            raise
        # after the answer is complete: a limit that is near takes nothing from it
        await report.throttle()
        await report.end(response)
        yield response

    async def _finished(
        self, response: ChatResponse, outgoing: Outgoing, model: str
    ) -> ChatResponse:
        """Add the cost, and what could not be given."""
        if response.usage is not None:
            usage = await self.provider.costs.add(model, response.usage)
            if usage is not response.usage:
                response = attrs.evolve(response, usage=usage)
        if response.degradation is None and outgoing.degradation is not None:
            response = attrs.evolve(response, degradation=outgoing.degradation)
        return response

    def _alive(self) -> TextDelta:
        """Make a sign of life; it belongs to the block that grows, so that indexes never go back."""
        return TextDelta(text="", index=self._index)


def _refuses_media(error: LLMError) -> bool:
    text = str(error).lower()
    if not isinstance(error, InvalidRequestError) and "support" not in text:
        return False
    return any(word in text for word in _MEDIA_WORDS)
