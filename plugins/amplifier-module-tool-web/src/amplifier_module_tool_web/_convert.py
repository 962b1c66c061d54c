"""Turn HTML into Markdown: the program of a process of its own.

Its arguments are the directory that holds the converter's package, and how many seconds and bytes of memory it may
use. It reads one line of JSON (`html`, `base_url`, `most`) and answers with UTF-8 of at most `most` characters.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import IO

__all__ = ["serve"]

_MAX_DEPTH = 1000


def serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Carry out one order: what the page hides, its scripts and its forms are left out."""
    import html_to_markdown as converter  # found through the first argument

    order = json.loads(orders.readline())
    options = converter.ConversionOptions(
        base_url=order["base_url"],
        inline_data_media="alt_text_only",
        max_depth=_MAX_DEPTH,
        preprocessing=converter.PreprocessingOptions(
            enabled=True, remove_forms=True, remove_navigation=False
        ),
    )
    text = converter.convert(order["html"], options).content or ""
    answers.write(text[: order["most"]].encode("utf-8", "replace"))


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    try:
        import resource  # not on every platform
    except ImportError:
        pass
    else:
        for kind, most in (
            (resource.RLIMIT_CPU, int(sys.argv[2])),
            (resource.RLIMIT_AS, int(sys.argv[3])),
        ):
            lowest = min(
                [
                    most,
                    *(
                        value
                        for value in resource.getrlimit(kind)
                        if value != resource.RLIM_INFINITY
                    ),
                ]
            )
            with suppress(ValueError):  # macOS takes no limit of memory
                resource.setrlimit(kind, (lowest, lowest))
    serve(sys.stdin.buffer, sys.stdout.buffer)
