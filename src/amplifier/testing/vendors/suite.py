"""The whole suite."""

from __future__ import annotations

from amplifier.testing.vendors.refusals import RefusalTests
from amplifier.testing.vendors.secrecy import SecrecyTests
from amplifier.testing.vendors.streams import StreamTests
from amplifier.testing.vendors.waits import WaitTests

__all__ = ["VendorBehaviorTests"]


class VendorBehaviorTests(StreamTests, RefusalTests, WaitTests, SecrecyTests):
    """What every vendor's provider does; a subclass names the provider and gives streams of its API.

    Attributes:
        provider: the decorated class.
        config: what mounts it; holds an `api_key` where the vendor has keys.
        text: a whole stream that answers with text.
        tools: a whole stream that calls `tool`.
        tool: the tool's name.
        thinking: a whole stream with visible thinking before its text, if the vendor has any.
        bad: a folder of streams that are broken, one in each file.
        becomes: what becomes of each, by the file's name without its ending: the name of an `LLMError`; the reason of
            an incomplete answer, such as `length`; `problem` for an answer whose calls cannot be read;
            `text` for one without calls in which what is broken is passed over.
        statuses: the error's class, and whether it may pass, by HTTP status; default those of the SDK.
        least_bad: how many bad streams there are at least.
    """
