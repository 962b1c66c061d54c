"""Regular expressions under a deadline.

Python's `re` can take for ever on a short line, and holds the interpreter lock while it does: neither a
thread nor a check between lines would help, the whole program would stand still; and some patterns take hundreds of
bytes of memory for each character. So the matching is done by a child process of limited memory, which is killed when
the time is up or the call is cancelled.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import IO, Final, Self

import attrs
from anyio import ContextManagerMixin
from anyio.from_thread import check_cancelled

from amplifier_kit.processes import python_argv, start_python
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["LineMatcher", "RequiredLiterals"]

_TOKEN: Final = re.compile(
    r"(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<optional>[*?]|\{[0-9,]*\}?)"
    r"|\\(?P<escaped>[^a-zA-Z0-9])"
    r"|(?P<any>[.^$+]|\\[bBdDsSwW])"
    r"|(?P<alternative>\|)"
    r"|(?P<plain>[^\\(\[])",
    re.DOTALL,
)

_MAX_PATTERN_LENGTH: Final = 1000
_POLL_MILLISECONDS: Final = 20
_CHUNK_BYTES: Final = 1 << 16
# A text is there as bytes, as characters and as lines: many short ones take most.
_MEMORY: Final = 1 << 28
_MEMORY_PER_BYTE: Final = 32

_PROGRAM: Final = str(Path(__file__).with_name("_match_lines.py"))


class LineMatcher(ContextManagerMixin):
    """Finds the lines of texts that match a pattern; a context manager that owns the child process.

    To be used in a worker thread.

    Args:
        pattern: a regular expression of Python.
        ignore_case: whether case does not count.
        seconds: how long the child may work in all.
        max_bytes: how long the longest text is.

    Raises:
        ToolError: the pattern is too long or no regular expression, or the child cannot be started.
    """

    def __init__(
        self, pattern: str, *, ignore_case: bool, seconds: float, max_bytes: int
    ) -> None:
        if len(pattern) > _MAX_PATTERN_LENGTH:
            raise ToolError(
                f"a pattern has at most {_MAX_PATTERN_LENGTH} characters; this has {len(pattern)}"
            )
        self._pattern = pattern
        self._ignore_case = ignore_case
        self._seconds = seconds
        self._memory = _MEMORY + max_bytes * _MEMORY_PER_BYTE
        self._deadline = time.monotonic() + seconds
        self._literals = RequiredLiterals.of(pattern, ignore_case=ignore_case)
        self._received = b""

    @contextmanager
    def __contextmanager__(self) -> Iterator[Self]:
        self._child = self._start()
        try:
            self._compile()
            yield self
        finally:
            self._end()

    def may_match(self, text: str) -> bool:
        """Whether a line of a text can match at all; `False` spares the text its way to the child."""
        return self._literals.may_be_in(text)

    def send(self, texts: Sequence[str], limit: int) -> None:
        r"""Send texts to the child, which works on while the caller does something else; lines end at `\\n`.

        All answers to the texts before them must have been received.

        Args:
            texts: at least one.
            limit: how many lines of each are wanted; at least 1.
        """
        data = [text.encode() for text in texts]
        header = " ".join(str(number) for number in (*map(len, data), limit))
        self._write(b"".join((header.encode(), b"\n", *data)))

    def receive(self, name: str) -> list[int]:
        """Return the indices of the lines that match in the next of the texts that were sent.

        Args:
            name: the file's name, for messages.

        Raises:
            ToolError: the time is up, or the child died.
        """
        answer = self._answer(name)
        assert isinstance(answer, list)
        return [index for index in answer if isinstance(index, int)]

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return start_python(
                # One second more than the deadline here, which gives the better
                # message.
                python_argv(_PROGRAM, str(ceil(self._seconds) + 1), str(self._memory)),
                new_session=False,
            )
        except OSError as error:
            raise ToolError(
                f"the process that searches cannot be started: {error.strerror}; read the files with read_file instead"
            ) from error

    def _compile(self) -> None:
        order = {"pattern": self._pattern, "ignore_case": self._ignore_case}
        self._write(json.dumps(order).encode() + b"\n")
        answer = self._answer("the pattern itself")
        if isinstance(answer, dict) and "error" in answer:
            raise ToolError(
                f"{self._pattern!r:.200} is no regular expression: {answer['error']}; escape plain text with \\"
            )

    def _write(self, request: bytes) -> None:
        requests, _ = self._pipes()
        # a child that died answers nothing, which is noticed then
        with suppress(BrokenPipeError):
            requests.write(request)
            requests.flush()

    def _answer(self, name: str) -> JSONValue:
        while b"\n" not in self._received:
            self._wait(name)
            _, answers = self._pipes()
            received = os.read(answers.fileno(), _CHUNK_BYTES)
            if not received:
                raise ToolError(
                    f"the process that matches {self._pattern!r:.200} ended at {name}; simplify the pattern"
                )
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        answer: JSONValue = json.loads(line)
        return answer

    def _wait(self, name: str) -> None:
        _, answers = self._pipes()
        poll = select.poll()
        poll.register(answers, select.POLLIN)
        # In short steps: this thread must notice a cancelled call soon.
        while not poll.poll(_POLL_MILLISECONDS):
            check_cancelled()
            if time.monotonic() > self._deadline:
                raise ToolError(
                    f"the search for {self._pattern!r:.200} reached its time limit of {self._seconds:g} s at {name};"
                    " simplify the pattern (repeats inside repeats can take for ever) or search fewer files"
                )

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        return self._child.stdin, self._child.stdout

    def _end(self) -> None:
        # Killed, not asked: a child inside the regular expression engine hears no
        # signal handler.
        self._child.kill()
        self._child.wait()
        requests, answers = self._pipes()
        answers.close()
        # what was still to be sent has no reader any more
        with suppress(BrokenPipeError):
            requests.close()


@attrs.frozen
class RequiredLiterals:
    """Texts of which a line holds at least one when a pattern matches it.

    They only ever tell of lines that nothing matches. Where a pattern shows none they are empty, and every line may
    match.
    """

    texts: tuple[str, ...]
    ignore_case: bool

    @classmethod
    def of(cls, pattern: str, *, ignore_case: bool) -> RequiredLiterals:
        """Read a pattern in Python's syntax."""
        texts = _longest_literals(pattern)
        if not ignore_case:
            return cls(texts, ignore_case)
        return cls(
            tuple(text.lower() for text in texts) if "".join(texts).isascii() else (),
            ignore_case,
        )

    def may_be_in(self, text: str) -> bool:
        """Whether a line of a text can hold one of them."""
        if not self.texts:
            return True
        if self.ignore_case:
            # Some letters outside ASCII are, without case, the same as one inside.
            if not text.isascii():
                return True
            text = text.lower()
        return any(literal in text for literal in self.texts)


def _longest_literals(pattern: str) -> tuple[str, ...]:
    """Return the longest literal of each alternative; nothing when one has none."""
    alternatives = [[""]]  # of each its literals, in order
    at = 0
    while token := _TOKEN.match(pattern, at):
        at = token.end()
        literals = alternatives[-1]
        if token.lastgroup in ("plain", "escaped"):
            literals[-1] += token[token.lastgroup]
        elif token.lastgroup == "alternative":
            alternatives.append([""])
        else:
            if token.lastgroup == "optional":
                # The repeat belongs to the last character, which then need not be
                # there.
                literals[-1] = literals[-1][:-1]
            literals.append("")
    # What a group and other escapes need is not looked into; one more alternative may stand behind them.
    if "|" in pattern[at:]:
        return ()
    found = tuple(max(literals, key=len) for literals in alternatives)
    if all(found):
        return found
    return ()
