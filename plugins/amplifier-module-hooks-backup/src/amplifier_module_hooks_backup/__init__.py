"""Copies of files as they were before an agent changed them, and the way back."""

from __future__ import annotations

from amplifier_module_hooks_backup._capture import BackupConfig
from amplifier_module_hooks_backup._mount import mount
from amplifier_module_hooks_backup.backups import BACKUPS, Backups
from amplifier_module_hooks_backup.entries import BackupEntry, BackupError

__all__ = ["BACKUPS", "BackupConfig", "BackupEntry", "BackupError", "Backups", "mount"]
