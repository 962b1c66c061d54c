"""Samples of one program, taken when another asks for them: a line with a number of steps each, until there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["answer_samples", "sampling"]


def answer_samples(sample: Callable[[int], float]) -> None:
    """Run a turn of as many steps as each line of standard input says, and print the seconds that it took."""
    for line in sys.stdin:
        print(json.dumps(sample(int(line))), flush=True)


@contextmanager
def sampling(
    command: Sequence[str], **variables: str
) -> Iterator[Callable[[int], float]]:
    """Run a program that answers samples, and yield what asks it for one."""
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        asks, answers = process.stdin, process.stdout
        assert asks is not None
        assert answers is not None

        def sample(steps: int) -> float:
            print(steps, file=asks, flush=True)
            line = answers.readline()
            if not line:
                raise RuntimeError(f"{' '.join(command)} ended")
            return float(json.loads(line))

        yield sample
