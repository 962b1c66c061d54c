"""Installing modules for a test: metadata alone for those of this repository, code too for those that a test writes."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

__all__ = ["ACME", "install", "install_ours", "module_site"]

PLUGINS: Final = Path(__file__).resolve().parents[2] / "plugins"

ACME: Final = '''
    """A provider with a key of its own, and one that cannot be imported."""

    import os
    from decimal import Decimal

    from amplifier_sdk.chat import ChatResponse, ConfigField, ProviderInfo, Usage
    from amplifier_sdk.content import TextBlock
    from amplifier_sdk.errors import ConfigError, Problem
    from amplifier_sdk.providers import BaseProvider

    KNOWN = {"api_key", "default_model", "priority", "base_url", "region", "is_fast", "zone"}
    FIELDS = (
        ConfigField(id="base_url", display_name="Address", prompt="where", default="https://acme.test"),
        ConfigField(id="region", display_name="Region", prompt="which", field_type="choice", choices=("eu", "us")),
        ConfigField(id="zone", display_name="Zone", prompt="which of eu", show_when={"region": "eu"}),
        ConfigField(id="is_fast", display_name="Fast", prompt="whether", field_type="boolean", env_var="ACME_FAST"),
        ConfigField(id="api_key", display_name="Key", prompt="the key", field_type="secret"),
    )


    class Acme(BaseProvider):
        name = "acme"

        def __init__(self, config):
            self.config = config

        def get_info(self):
            model = self.config.get("default_model", "acme-1")
            defaults = {"model": model, "context_window": 1000, "max_output_tokens": 100}
            return ProviderInfo(
                id="acme", display_name="Acme", credential_env_vars=("ACME_KEY",), defaults=defaults,
                config_fields=FIELDS if os.environ.get("ACME_FIELDS") else (),
            )

        async def deltas(self, request):
            model = request.model or self.get_info().defaults["model"]
            usage = Usage(input_tokens=7, output_tokens=2, total_tokens=9, cost_usd=Decimal("0.25"))
            yield ChatResponse(content=[TextBlock(text=f"OK from {model}")], usage=usage, finish_reason="stop")


    async def mount(coordinator, config):
        print("mounting acme")
        unknown = sorted(set(config) - KNOWN)
        if unknown:
            raise ConfigError([Problem(unknown[0], "unknown")], subject="configuration of provider-acme")
        if not (config.get("api_key") or os.environ.get("ACME_KEY")):
            raise ConfigError([Problem("api_key", "missing")], subject="configuration of provider-acme")
        await coordinator.mount("providers", Acme(config), name="acme")


    class Odd(Acme):
        def get_info(self):
            raise RuntimeError("it forgot its name")


    async def mount_odd(coordinator, config):
        await coordinator.mount("providers", Odd(config), name="odd")


    async def mount_nothing(coordinator, config):
        pass


    async def mount_lost(coordinator, config):
        raise ValueError("the disk is gone")
'''


def install(site: Path, name: str, points: Mapping[str, str], code: str = "") -> None:
    """Install a distribution below a folder of `sys.path`: its code, and its modules by id with what they name."""
    metadata = site / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8"
    )
    lines = [f"{module} = {target}" for module, target in points.items()]
    (metadata / "entry_points.txt").write_text(
        "\n".join(["[amplifier.modules]", *lines, ""]), "utf-8"
    )
    if code:
        (site / f"{name.replace('-', '_')}.py").write_text(dedent(code), "utf-8")
        # the one of the test before lies elsewhere
        sys.modules.pop(name.replace("-", "_"), None)


def install_ours(site: Path, *modules: str) -> None:
    """Make modules of this repository known that run from its folders and are not installed."""
    known = {point.name for point in entry_points(group="amplifier.modules")}
    for module in modules:
        if module not in known:
            project = tomllib.loads(
                (PLUGINS / f"amplifier-module-{module}" / "pyproject.toml").read_text(
                    "utf-8"
                )
            )
            points = project["project"]["entry-points"]["amplifier.modules"]
            install(site, f"amplifier-module-{module}", points)


@pytest.fixture(name="site")
def module_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of `sys.path`, empty."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder
