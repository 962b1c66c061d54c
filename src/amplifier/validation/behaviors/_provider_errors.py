"""What a provider raises instead of an answer."""

from __future__ import annotations

from typing import Final

from amplifier.validation.behaviors._provider_answers import given, setting_of, talking
from amplifier.validation.behaviors._stage import open_stage, skip_unless
from amplifier.validation.behaviors.behavior import BehaviorFailed, Suite, expect, require
from amplifier.validation.behaviors.subject import ProviderSamples, Subject
from amplifier_sdk.errors import LLMError

PROVIDER: Final = Suite("provider")


async def _failure(subject: Subject) -> LLMError:
    """Return what the provider raises when the vendor refuses."""
    case = given(subject.told(ProviderSamples).fails, "fails")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        try:
            response = await stage.provider.complete(case.build())
        except Exception as error:  # foreign code: what it raises is looked at
            return expect(error, LLMError, "What complete raises")
    raise BehaviorFailed(f"Instead of an error there was the answer {response!r:.300}")


@PROVIDER.behavior(fix="Map what the vendor's library raises to the LLMError family, with 'raise … from error'.")
async def fails_with_an_llm_error(subject: Subject) -> None:
    """When the vendor refuses an LLMError is raised."""
    await _failure(subject)


@PROVIDER.behavior(fix="Give every LLMError the provider's name.")
async def names_itself_in_errors(subject: Subject) -> None:
    """An error names the provider it comes from."""
    error = await _failure(subject)
    require(error.provider, f"{type(error).__name__} names no provider: {error}")


@PROVIDER.behavior(fix="Say in the message what happened.")
async def says_what_went_wrong(subject: Subject) -> None:
    """An error says what happened, and whether trying again may help."""
    error = await _failure(subject)
    require(str(error).strip() and isinstance(error.retryable, bool), f"{type(error).__name__}: {error}")
    plain = error.status_code is None or isinstance(error.status_code, int)
    require(plain, f"The status code is {error.status_code!r}")


@PROVIDER.behavior(fix="Keep keys and headers out of error messages.")
async def hides_secrets_from_its_errors(subject: Subject) -> None:
    """An error does not repeat a secret of the configuration."""
    case = given(subject.told(ProviderSamples).fails, "fails")
    config = subject.config if case.config is None else case.config
    secrets = [v for k, v in config.items() if isinstance(v, str) and len(v) > 3 and ("key" in k or "token" in k)]
    skip_unless(secrets, "its configuration holds no key or token")
    text = str(await _failure(subject))
    require(not any(secret in text for secret in secrets), "The error repeats a secret")


@PROVIDER.behavior(fix="Keep nothing of a failed request.")
async def answers_after_an_error(subject: Subject) -> None:
    """After a request that failed the next one is answered."""
    case = given(subject.told(ProviderSamples).fails, "fails")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        try:
            await stage.provider.complete(case.build())
        except LLMError:
            response = await stage.provider.complete(talking(subject).build())
            require(response.text, f"The answer is {response!r:.300}")
            return
    raise BehaviorFailed("The request of the sample 'fails' was answered")
