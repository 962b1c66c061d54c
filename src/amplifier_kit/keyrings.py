"""The system's keyring, for secrets that no file should hold; its functions block.

Needs the extra `amplifier[keyring]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from amplifier_sdk.errors import AmplifierError

__all__ = ["Keyring"]


@attrs.frozen
class Keyring:
    """The system's keyring, through the package `keyring` where it is installed.

    Args:
        service: what its entries are stored under.
        remedy: what the person can do where it does not answer for `name`.
    """

    service: str = "amplifier"
    remedy: str = "unlock it, or set {name} in the environment"

    def is_there(self) -> bool:
        """Tell whether there is a keyring that keeps what it is given."""
        try:
            import keyring
            from keyring.backends import fail, null
        except ImportError:
            return False
        return not isinstance(keyring.get_keyring(), (fail.Keyring, null.Keyring))

    def get(self, name: str) -> str | None:
        """Return a secret; `None` where there is none.

        Raises:
            AmplifierError: the keyring is locked, or fails; so do the others.
        """
        import keyring

        with self._asking(name):
            return keyring.get_password(self.service, name)

    def set(self, name: str, value: str) -> None:
        """Keep a secret."""
        import keyring

        with self._asking(name):
            keyring.set_password(self.service, name, value)

    def remove(self, name: str) -> None:
        """Forget a secret; one that somebody else removed from the keyring is forgotten."""
        import keyring

        with self._asking(name):
            # Deleting what somebody else removed would be an error.
            if keyring.get_password(self.service, name) is not None:
                keyring.delete_password(self.service, name)

    @contextmanager
    def _asking(self, name: str) -> Iterator[None]:
        from keyring.errors import KeyringError

        try:
            yield
        except KeyringError as error:
            remedy = self.remedy.format(name=name)
            raise AmplifierError(
                f"The system's keyring does not answer for {name}: {error}; {remedy}"
            ) from error
