"""The metadata of distributions, read as `importlib.metadata` reads it."""

from __future__ import annotations

import tempfile
from importlib.metadata import PathDistribution
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from amplifier.kernel.modules.sources import GROUP, installed_modules

SPACE = st.sampled_from(["", " ", "  "])
NAME = st.from_regex(r"[a-z][a-z0-9._-]{0,8}", fullmatch=True)
TARGET = st.from_regex(r"[a-z]\w{0,5}(\.[a-z]\w{0,5})?(:[a-z]\w{0,5})?", fullmatch=True)
ENTRY = st.builds(
    "{}{}{}={}{}{}".format,
    SPACE,
    NAME,
    SPACE,
    SPACE,
    TARGET,
    st.sampled_from(["", " ", " [extra]"]),
)
LINE = ENTRY | st.sampled_from(["", "   ", "# comment = x:y", "  # indented"])
SECTION = st.sampled_from(
    [f"[{GROUP}]", "[console_scripts]", f"[{GROUP}.more]", f" [{GROUP}] "]
)


@st.composite
def metadata(draw: st.DrawFn) -> str:
    """The text of an `entry_points.txt`."""
    sections = draw(
        st.lists(st.tuples(SECTION, st.lists(LINE, max_size=4)), max_size=4)
    )
    return draw(st.sampled_from(["\n", "\r\n"])).join(
        line for title, lines in sections for line in [title, *lines]
    )


@given(metadata())
def test_the_entry_points_are_those_that_importlib_finds(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "a_dist-1.0.dist-info"
        where.mkdir()
        (where / "entry_points.txt").write_bytes(text.encode())
        points = PathDistribution(where).entry_points.select(group=GROUP)

        found = installed_modules([folder], refresh=True)

    # A name that stands twice in one distribution counts once: it is no conflict between two.
    expected = {point.name: point for point in reversed(list(points))}
    assert {module.id: module.target for module in found} == {
        name: point.value.split("[")[0].strip() for name, point in expected.items()
    }
    assert all(
        module.distribution == "a-dist" and module.version == "1.0" for module in found
    )
