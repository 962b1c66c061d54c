"""The code samples of the specifications, verbatim, and how a sample is run.

`blocks/` holds them below the headings under which they stand. A sample is run as it is
written; only the package that it imports from is another, and what it leaves open
(`...` within brackets, names, the function or class around it) is given from outside.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from inspect import iscoroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import attrs

FOLDER: Final = Path(__file__).parent / "blocks"

_IMPORTS: Final = {
    "amplifier_core.testing": "amplifier.testing",
    "amplifier_core.models": "amplifier_sdk",
    "amplifier_core.hooks": "amplifier",
}
_FENCE: Final = "```"
_LEFT_OUT: Final = re.compile(r'(?<=[{(, ])(?<!"\{)\.\.\.(?=[})])')


@attrs.frozen
class Sample:
    """One sample: the headings above it, its place among those below the same, its text."""

    headings: tuple[str, ...]
    number: int
    text: str

    @property
    def name(self) -> str:
        """The outermost and the innermost heading, and its number from the second on."""
        ends = dict.fromkeys((self.headings[0], self.headings[-1]))
        name = " / ".join(ends)
        if self.number:
            return f"{name} ({self.number + 1})"
        return name

    @property
    def code(self) -> str:
        """The text with our imports; `**rest` stands where the sample leaves something out."""
        code = _LEFT_OUT.sub("**rest", self.text)
        for theirs, ours in _IMPORTS.items():
            code = code.replace(f"from {theirs} import", f"from {ours} import")
        return code

    def parts(self, marker: str) -> tuple[Sample, Sample]:
        """Return the lines before a line of it and those from there on, as two samples."""
        before, _, after = self.text.partition(marker)
        assert after, f"{self.name} has no {marker!r}"
        return attrs.evolve(self, text=before), attrs.evolve(self, text=marker + after)

    async def run(
        self, names: SimpleNamespace, within: str = "", then: str = ""
    ) -> SimpleNamespace:
        """Run the sample and return all names that there are afterwards.

        Args:
            names: what the sample finds.
            within: the line that the sample is the body of.
            then: the last line of that body.
        """
        code = self.code
        if within:
            body = textwrap.indent(f"{code}\n{then}", "    ")
            code = f"{within}\n{body}"
        scope: dict[str, object] = {**vars(names), "shown": []}
        compiled = compile(
            _collecting(ast.parse(code)),
            self.name,
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        running = eval(compiled, scope)
        if iscoroutine(running):
            await running
        return SimpleNamespace(**scope)


def _collecting(tree: ast.Module) -> ast.Module:
    """Let what a sample only shows be appended to `shown`."""
    for place, statement in enumerate(tree.body):
        if isinstance(statement, ast.Expr):
            shown = ast.parse("shown.append(0)").body[0]
            assert isinstance(shown, ast.Expr)
            assert isinstance(shown.value, ast.Call)
            shown.value.args = [statement.value]
            tree.body[place] = shown
    return ast.fix_missing_locations(tree)


@cache
def samples() -> dict[str, Sample]:
    """Return all samples by their names, in the order of their documents."""
    found = [
        sample
        for path in sorted(FOLDER.glob("*.md"))
        for sample in _samples_of(path.read_text(encoding="utf-8"))
    ]
    named = {sample.name: sample for sample in found}
    assert len(named) == len(found), "two samples have one name"
    return named


def _samples_of(text: str) -> Iterator[Sample]:
    headings: list[str] = []
    code: list[str] | None = None
    number = 0
    for line in text.splitlines():
        if code is not None and line == _FENCE:
            yield Sample(tuple(headings), number, "\n".join(code))
            code, number = None, number + 1
        elif code is not None:
            code.append(line)
        elif line.startswith(_FENCE):
            code = []
        elif line:
            level, _, heading = line.partition(" ")
            # levels may be left out: what stands deeper ends at each heading
            del headings[len(level) - 1 :]
            headings.append(heading)
            number = 0
