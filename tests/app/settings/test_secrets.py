"""Secrets are kept where only their owner reads them, and stand in for environment variables."""

from __future__ import annotations

import stat

import attrs
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.settings.secrets import SecretStore
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.keyrings import Keyring
from amplifier_sdk.errors import AmplifierError


@attrs.frozen
class MemoryKeyring(Keyring):
    """A keyring that keeps what it is given."""

    stored: dict[str, str] = attrs.field(factory=dict)

    def is_there(self) -> bool:
        return True

    def get(self, name: str) -> str | None:
        return self.stored.get(name)

    def set(self, name: str, value: str) -> None:
        self.stored[name] = value

    def remove(self, name: str) -> None:
        del self.stored[name]


@attrs.frozen
class NoKeyring(Keyring):
    """A machine without one."""

    def is_there(self) -> bool:
        return False


@pytest.fixture(params=["keyring", "file"])
def store(request: pytest.FixtureRequest, dirs: AppDirs) -> SecretStore:
    keyring = MemoryKeyring() if request.param == "keyring" else NoKeyring()
    return SecretStore(file=PrivateFile(dirs.home / "secrets.json"), keyring=keyring)


def test_what_is_kept_is_found_again(store: SecretStore) -> None:
    assert store.names() == {}
    assert store.get("KEY") is None
    where = store.set("KEY", "s3cret")
    assert store.names() == {"KEY": where}
    assert store.get("KEY") == "s3cret"
    assert stat.S_IMODE(store.file.path.stat().st_mode) == 0o600
    assert ("s3cret" in store.file.path.read_text()) is (where == "file")


def test_what_is_removed_is_gone(store: SecretStore) -> None:
    store.set("KEY", "s3cret")
    assert store.remove("KEY")
    assert store.get("KEY") is None
    assert not store.remove("KEY")


def test_the_environment_is_filled_where_it_lacks_a_name(store: SecretStore) -> None:
    store.set("ONE", "1")
    store.set("TWO", "2")
    environ = {"TWO": "mine"}
    assert store.enter(environ) == ["ONE"]
    assert environ == {"ONE": "1", "TWO": "mine"}


@pytest.mark.parametrize(
    ("name", "value"), [("A B", "x"), ("", "x"), ("1A", "x"), ("A", "")]
)
def test_what_is_no_secret_is_refused(
    store: SecretStore, name: str, value: str
) -> None:
    with pytest.raises(ValueError, match="secret"):
        store.set(name, value)


def test_a_machine_without_the_package_has_no_keyring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    assert not Keyring().is_there()


@pytest.mark.process  # the first look for a keyring asks for the system's libraries
def test_the_systems_keyring_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    backend = pytest.importorskip("keyring.backend")

    errors = pytest.importorskip("keyring.errors")
    # first, since a class of a backend offers itself by being there
    before = keyring.get_keyring()

    class Backend(backend.KeyringBackend):  # type: ignore[name-defined,misc]  # keyring has no stubs to subclass by
        priority = 1
        is_locked = False
        stored: dict[tuple[str, str], str] = {}  # noqa: RUF012  # shared like a system's own

        def get_password(self, service: str, username: str) -> str | None:
            if self.is_locked:
                raise errors.KeyringLocked("the person is away")
            return self.stored.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.stored[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.stored[service, username]

    keyring.set_keyring(Backend())
    try:
        own = Keyring()
        assert own.is_there()
        own.set("KEY", "s3cret")
        assert own.get("KEY") == "s3cret"
        own.remove("KEY")
        assert own.get("KEY") is None
        own.remove("KEY")
        Backend.is_locked = True
        with pytest.raises(
            AmplifierError,
            match="the person is away; unlock it, or set KEY in the environment",
        ):
            own.get("KEY")
    finally:
        keyring.set_keyring(before)


def test_the_persons_own_store_is_in_their_folder(dirs: AppDirs) -> None:
    assert SecretStore.of(dirs).file.path == dirs.home / "secrets.json"
