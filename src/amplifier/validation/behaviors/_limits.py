"""How long modules may take and how much they may return, in seconds, characters and messages."""

from __future__ import annotations

from typing import Final

ANSWER: Final = 1.0
"""Seconds in which a handler answers; a turn waits for each."""
CANCELLATION: Final = 2.0
"""Seconds within which what was cancelled has ended."""
CLEANUP: Final = 2.0
"""Seconds that one clean-up may take here; a session gives it 5."""
HELD_LOOP: Final = 1.0
"""Seconds for which nothing may block the event loop; far above what a busy machine does by itself."""
LONG_HISTORY: Final = 10.0
"""Seconds for `HISTORY_OF` messages; a store that walks its history for each takes minutes."""
OPENING: Final = 1.0
"""Seconds in which a session with a thousand messages opens."""
REFUSAL: Final = 2.0
"""Seconds in which a second writer is refused."""

HISTORY_OF: Final = 10_000
"""Messages of a long history."""

DESCRIPTION: Final = 1024
"""Characters of a description that the strictest of the large vendors takes."""
INJECTION: Final = 10_240
"""Characters of an injected text that a session takes by default."""
LONG_TEXT: Final = 1_000_000
"""Characters of a text as a model may send by mistake."""
OUTPUT: Final = 1_000_000
"""Characters; far more than any model reads of one result."""
SCHEMA: Final = 32_768
"""Characters of an input schema, which every request carries."""
