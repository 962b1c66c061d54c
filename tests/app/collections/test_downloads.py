"""Collections from archives at addresses: fetched by https or from this machine, within limits, and followed."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import attrs
import pytest

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.collections.installation import CollectionInstaller
from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sources import downloads
from amplifier.app.sources.fetch_errors import SourceFetchError
from amplifier_kit.installation import install_command
from amplifier_sdk.errors import AmplifierError, ConfigError
from tests.app.projects import write

METADATA = '[project]\nname = "acme"\nversion = "{version}"\n'


@attrs.define(eq=False)
class Site:
    """A web server on this machine, and what it answers by path: a body, or where it leads on to."""

    address: str = ""
    bodies: dict[str, bytes] = attrs.field(factory=dict)
    leads: dict[str, str] = attrs.field(factory=dict)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, lead = site.bodies.get(self.path, b""), site.leads.get(self.path)
            self.send_response(302 if lead else 200 if body else 404)
            if lead:
                self.send_header("Location", lead)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield site
        server.shutdown()
        thread.join()


@pytest.fixture
def packed(tmp_path: Path) -> Callable[[str], bytes]:
    """Make an archive of a collection of a version."""

    def packed(version: str) -> bytes:
        folder = tmp_path / "packing"
        shutil.rmtree(folder, ignore_errors=True)
        write(folder / "pyproject.toml", METADATA.format(version=version))
        write(folder / "context/rules.md", f"Rules {version}.")
        with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as opened:
            opened.add(folder, f"acme-{version}")
        return (tmp_path / "packed.tar.gz").read_bytes()

    return packed


def installer(dirs: AppDirs, *, offline: bool = False) -> CollectionInstaller:
    return CollectionInstaller.of(dirs, offline=offline)


def test_an_archive_is_fetched_unpacked_and_followed(
    dirs: AppDirs, site: Site, packed: Callable[[str], bytes]
) -> None:
    source = f"{site.address}/acme.tar.gz"
    site.bodies["/acme.tar.gz"] = packed("1.0")
    (change,) = installer(dirs).install(source)
    assert (change.version, change.source) == ("1.0", source)

    site.bodies["/acme.tar.gz"] = packed("2.0")
    (change,) = installer(dirs).update()
    assert (change.version, change.is_changed) == ("2.0", True)
    found = (
        CollectionLibrary(dirs, ProjectFiles(dirs))
        .require("acme")
        .find("context/rules.md")
    )
    assert found is not None
    assert found.read_text() == "Rules 2.0."


def test_a_name_of_the_catalogue_may_lead_to_an_archive(
    dirs: AppDirs, site: Site, packed: Callable[[str], bytes]
) -> None:
    site.bodies["/acme.tar.gz"] = packed("1.0")
    write(
        dirs.home / "settings.yaml",
        f"collections: {{catalogue: {{acme: '{site.address}/acme.tar.gz'}}}}\n",
    )

    assert installer(dirs).install("acme")[0].version == "1.0"


def test_what_cannot_be_fetched_says_why_and_leaves_nothing(
    dirs: AppDirs,
    site: Site,
    packed: Callable[[str], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = f"{site.address}/acme.tar.gz"
    with pytest.raises(SourceFetchError, match="working offline"):
        installer(dirs, offline=True).install(source)
    with pytest.raises(SourceFetchError, match="its server answered 404"):
        installer(dirs).install(source)
    with pytest.raises(
        SourceFetchError, match=r"127\.0\.0\.1:9/acme\.zip cannot be fetched: "
    ):
        installer(dirs).install("http://127.0.0.1:9/acme.zip")
    site.bodies["/acme.tar.gz"] = b"no archive"
    with pytest.raises(ConfigError, match="it cannot be read"):
        installer(dirs).install(source)
    site.bodies["/acme.tar.gz"] = packed("1.0")
    with (
        monkeypatch.context() as patch,
        pytest.raises(SourceFetchError, match=r"it took longer than|timed out"),
    ):
        patch.setattr(downloads, "_TIMEOUT", 0.0001)
        installer(dirs).install(source)
    with (
        monkeypatch.context() as patch,
        pytest.raises(SourceFetchError, match="it has more than 100 bytes"),
    ):
        patch.setattr(downloads, "MAX_BYTES", 100)
        installer(dirs).install(source)
    with (
        monkeypatch.context() as patch,
        pytest.raises(
            AmplifierError, match=re.escape(install_command("amplifier[http]"))
        ),
    ):
        patch.setitem(sys.modules, "httpx2", None)
        installer(dirs).install(source)

    assert not list((dirs.home / "collections").iterdir())


def test_an_address_with_the_usual_port_leads_nowhere_else(dirs: AppDirs) -> None:
    # nothing is served there, or nothing of this name
    with pytest.raises(SourceFetchError) as refused:
        installer(dirs).install("http://127.0.0.1:80/nothing-of-this-name.zip")

    assert "it leads on" not in str(refused.value)


def test_an_address_leads_on_by_https_alone(dirs: AppDirs, site: Site) -> None:
    site.leads["/acme.zip"] = f"{site.address}/other.zip"

    with pytest.raises(
        SourceFetchError,
        match=r"it leads on to 127\.0\.0\.1, which is not asked by https",
    ):
        installer(dirs).install(f"{site.address}/acme.zip")


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("http://example.org/acme.zip", "fetched by https"),
        ("http://127.0.0.1.example.org/acme.zip", "fetched by https"),
        ("https://me:s3cret@example.org/acme.zip", "credentials"),
        ("https://example.org/acme.zip?token=s3cret", "ends with"),
        ("https://example.org/acme.zip#x", "ends with"),
        ("https://example.org/acme", "written as 'git\\+https"),
        ("https://example.org/../acme.zip", "not allowed"),
        ("https://example.org/a%0acme.zip", "not allowed"),
        ("https://[example/acme.zip", "no URL"),
        ("https:///acme.zip", "no name of a host"),
    ],
)
def test_an_address_that_may_not_be_asked_is_refused(
    dirs: AppDirs, source: str, match: str
) -> None:
    with pytest.raises(ConfigError, match=match) as refused:
        installer(dirs).install(source)

    assert "s3cret" not in str(refused.value)
