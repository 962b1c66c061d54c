"""What signing in leaves: tokens, and where they are renewed; in the keyring, or in a file if the person chose that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal, Self, TypeAlias

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.installation import install_command
from amplifier_kit.keyrings import Keyring
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["GrantStore", "OAuthGrant", "StoredIn"]

StoredIn: TypeAlias = Literal["keyring", "file"]
"""Where a grant is stored."""

_EARLY_SECONDS: Final = 30.0
_REMEDY: Final = "unlock it, or sign in again with 'amplifier mcp login'"


@attrs.frozen(kw_only=True)
class OAuthGrant:
    """What a server's authorization server granted.

    Args:
        tokens: the answer of its token endpoint.
        expires_at: when the access token ends, in seconds since the epoch; `None` where nobody said.
        client: what this program is registered as.
        issuer: the metadata of the authorization server; tokens are renewed there alone.
        resource: the metadata of the server; `None` where it has none.
    """

    tokens: Mapping[str, JSONValue] = attrs.field(repr=False)
    expires_at: float | None = None
    client: Mapping[str, JSONValue] = attrs.field(repr=False)
    issuer: Mapping[str, JSONValue] = attrs.field(repr=False)
    resource: Mapping[str, JSONValue] | None = attrs.field(default=None, repr=False)

    @property
    def access(self) -> str:
        """The token that requests carry."""
        return str(self.tokens.get("access_token") or "")

    def is_over(self, now: float) -> bool:
        """Tell whether the access token has ended, or is about to."""
        return self.expires_at is not None and now > self.expires_at - _EARLY_SECONDS

    def to_text(self) -> str:
        """Write it as it is stored."""
        return json.dumps(attrs.asdict(self, recurse=False), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Read what was stored; `None` where it is damaged."""
        try:
            found = as_object(json.loads(text))
        except ValueError:
            return None
        expires, resource = found.get("expires_at"), found.get("resource")
        return cls(
            tokens=as_object(found.get("tokens")),
            expires_at=expires if isinstance(expires, (int, float)) else None,
            client=as_object(found.get("client")),
            issuer=as_object(found.get("issuer")),
            resource=resource if isinstance(resource, dict) else None,
        )


@attrs.frozen(kw_only=True)
class GrantStore:
    """The person's grants by the address of the server; a file names them, and its functions block.

    Args:
        file: names them, and holds those that the person wanted there.
        keyring: holds the others.
    """

    file: PrivateFile
    keyring: Keyring = attrs.field(
        factory=lambda: Keyring(service="amplifier-mcp", remedy=_REMEDY)
    )

    @classmethod
    def in_home(cls) -> Self:
        """Return the person's own: `mcp/logins.json` in the home folder of this product."""
        return cls(file=PrivateFile(amplifier_home() / "mcp" / "logins.json"))

    def get(self, url: str) -> OAuthGrant | None:
        """Return the grant for a server; `None` where nobody signed in.

        Raises:
            AmplifierError: the keyring does not answer.
            OSError: the file is damaged, or others may have written it.
        """
        entry = self._entries(self.file.read()).get(url)
        if entry is None:
            return None
        text = entry.get("grant")
        if not isinstance(text, str):
            text = self.keyring.get(url)
        if text is None:
            return None
        return OAuthGrant.from_text(text)

    def set(
        self, url: str, grant: OAuthGrant, stored_in: StoredIn | None = None
    ) -> None:
        """Store a grant; default where one for this server is stored already.

        Raises:
            AmplifierError: there is no keyring, or it does not answer.
            OSError: the file cannot be written.
        """
        if stored_in is None:
            entry = self._entries(self.file.read()).get(url, {})
            stored_in = "file" if "grant" in entry else "keyring"
        data: JSONObject = {"grant": grant.to_text()}
        if stored_in == "keyring":
            self.require_keyring()
            self.keyring.set(url, grant.to_text())
            data = {}
        self.file.update(lambda content: {**self._entries(content), url: data})

    def remove(self, url: str) -> bool:
        """Forget the grant for a server; whether there was one.

        Raises:
            AmplifierError: the keyring does not answer.
            OSError: the file cannot be written.
        """
        entry = self._entries(self.file.read()).get(url)
        if entry is None:
            return False
        if "grant" not in entry:
            self.keyring.remove(url)
        self.file.update(
            lambda content: {
                key: stored
                for key, stored in self._entries(content).items()
                if key != url
            }
        )
        return True

    def require_keyring(self) -> None:
        """Check that tokens can be stored in the keyring.

        Raises:
            AmplifierError: there is none; names the remedies.
        """
        if not self.keyring.is_there():
            raise AmplifierError(
                f"There is no keyring to store tokens in: {install_command('amplifier[keyring]')}, or store them in a"
                " file that only you read with --store-in file"
            )

    @staticmethod
    def _entries(content: JSONValue) -> dict[str, JSONObject]:
        return {
            url: entry
            for url, entry in as_object(content).items()
            if isinstance(entry, dict)
        }
