"""The tutorial's steps run one after the other, as a person types them, with the real embedded model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = (
    Path(__file__).resolve().parents[2] / "docs/get-started/first-ten-minutes.md"
)
_STEP: Final = re.compile(
    r"<!-- step -->\n```bash\n(?P<commands>.*?)^```$", re.DOTALL | re.MULTILINE
)
_SCRIPTS: Final = Path(sys.executable).parent
_WEIGHTS: Final = Path(os.environ.get("AMPLIFIER_CACHE", "")) / "models"


@pytest.mark.model
@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    not (_SCRIPTS / "amplifier").exists(),
    reason="the command amplifier is not installed here",
)
@pytest.mark.skipif(
    not os.environ.get("AMPLIFIER_CACHE") or not any(_WEIGHTS.rglob("*.gguf")),
    reason="the model's weights are not in AMPLIFIER_CACHE; .ci/run fetches them",
)
def test_every_step_of_the_first_ten_minutes_works(tmp_path: Path) -> None:
    steps = [match["commands"] for match in _STEP.finditer(PAGE.read_text("utf-8"))]
    assert len(steps) >= 6
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "NO_COLOR": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    environment["PATH"] = f"{_SCRIPTS}{os.pathsep}{environment['PATH']}"
    environment.pop("AMPLIFIER_HOME", None)
    done = subprocess.run(
        [
            "bash",
            "-euo",
            "pipefail",
            "-c",
            "\n".join(f"{step}\necho '=== step'" for step in steps),
        ],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("=== step\n")
    assert printed[0].strip()
    assert "chain: shop" in printed[1]
    assert "mentions:resolved" in printed[2]
    assert "2 EUR" in printed[3]
    page = (tmp_path / "shop" / "trace.html").read_text("utf-8")
    assert "<html" in page
    assert "price_of" not in page  # the last session is the one that was killed
