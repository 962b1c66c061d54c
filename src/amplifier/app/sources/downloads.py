"""Fetching archives from web servers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amplifier.app.sources.fetch_errors import SourceFetchError, offline_error
from amplifier.app.sources.locations import ArchiveLocation
from amplifier.app.sources.trees import MAX_BYTES
from amplifier_kit.installation import install_command
from amplifier_sdk.errors import AmplifierError

if TYPE_CHECKING:
    import httpx2

__all__ = ["download"]

_TIMEOUT: Final = 120.0
"""Seconds that a download may take; a server that says nothing for a quarter of them is given up."""


def download(location: ArchiveLocation, target: Path, *, offline: bool = False) -> None:
    """Write an archive into a file, which is made; the function blocks.

    Args:
        location: where it is.
        target: the file; there is none yet.
        offline: whether nothing may be fetched.

    Raises:
        FetchError: it cannot be fetched, leads to where it may not be fetched from, or is too large.
        AmplifierError: the library that asks web servers is not installed.
        OSError: the file cannot be written.
    """
    if offline:
        raise offline_error(location)
    try:
        import httpx2  # comes with an extra, and is needed by nothing else here
    except ImportError as error:
        raise AmplifierError(
            f"To fetch archives, {error.name} is needed: {install_command('amplifier[http]')}"
        ) from error

    asked = httpx2.URL(location.url)  # in the form in which requests have theirs

    def require_secure(request: httpx2.Request) -> None:
        if request.url.scheme != "https" and request.url != asked:
            problem = f"it leads on to {request.url.host}, which is not asked by https"
            raise SourceFetchError(location, problem)

    # The client's own limit counts from each piece: a server that drips could keep it
    # for ever.
    end = time.monotonic() + _TIMEOUT
    # what arrives is the archive, byte for byte
    headers = {"Accept-Encoding": "identity"}
    hooks = {"request": [require_secure]}
    try:
        with (
            httpx2.Client(
                headers=headers,
                event_hooks=hooks,
                follow_redirects=True,
                timeout=_TIMEOUT / 4,
            ) as client,
            client.stream("GET", location.url) as response,
        ):
            response.raise_for_status()
            with target.open("xb") as file:
                for chunk in response.iter_raw():
                    if file.tell() + len(chunk) > MAX_BYTES:
                        problem = f"it has more than {MAX_BYTES} bytes"
                        raise SourceFetchError(location, problem)
                    if time.monotonic() > end:
                        problem = f"it took longer than {_TIMEOUT:g} s"
                        raise SourceFetchError(location, problem)
                    file.write(chunk)
    except httpx2.HTTPStatusError as error:
        problem = f"its server answered {error.response.status_code}"
        raise SourceFetchError(location, problem) from error
    except httpx2.HTTPError as error:
        raise SourceFetchError(location, str(error) or type(error).__name__) from error
