"""Match the lines of texts against a regular expression: the program of a process of its own.

It reads one line of JSON (`pattern`, `ignore_case`) and answers `{}` or `{"error": …}`. Then, for some texts at a
time, it reads a line `LENGTH … LIMIT` and all their bytes of UTF-8, one text behind the other, and answers each text
with a line of its own: the JSON list of the indices of the first LIMIT lines that match. All is read before anything
is matched, so that no pattern holds up whoever writes. It ends with its input. Its arguments are how many seconds of
processor time and how many bytes of memory it may use. Only the standard library is used: the program is run by its
path, without the packages around it.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from itertools import islice
from typing import IO

__all__ = ["serve"]


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until they end."""
    order = json.loads(requests.readline())
    try:
        search = re.compile(
            order["pattern"], re.IGNORECASE if order["ignore_case"] else 0
        ).search
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        # ValueError for flags that exclude others
        _answer(answers, {"error": str(error)})
        return
    _answer(answers, {})
    while header := requests.readline():
        *lengths, limit = map(int, header.split())
        for text in [requests.read(length).decode("utf-8") for length in lengths]:
            matching = (
                index for index, line in enumerate(text.split("\n")) if search(line)
            )
            _answer(answers, list(islice(matching, limit)))


def _answer(answers: IO[bytes], value: object) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    import resource  # not on every platform, and needed only where the program runs

    # The system then ends the process even when whoever started it died before.
    for kind, most in (
        (resource.RLIMIT_CPU, int(sys.argv[1])),
        (resource.RLIMIT_AS, int(sys.argv[2])),
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
