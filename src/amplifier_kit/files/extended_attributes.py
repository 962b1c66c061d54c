"""A file's extended attributes: its access control list, and what programs keep beside its content.

A file that takes another's place has to take them over. Without the list the permissions allow the group what the
list allowed nobody but those whom it names, and the list that a directory gives to new files lets others in.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

__all__ = ["take_over_attributes"]

_ACCESS: Final = "system.posix_acl_access"
_USER: Final = "user."


def take_over_attributes(old: int, new: int) -> None:
    """Give an open file the access control list and the user attributes of another.

    Labels and capabilities are the system's, which gives them anew. Only Linux has attributes that Python knows.

    Args:
        old: the handle of the file whose place is taken.
        new: the handle of the file that takes it.

    Raises:
        OSError: the system refuses one of them.
    """
    if sys.platform != "linux":
        return
    kept = [name for name in _names(old) if name == _ACCESS or name.startswith(_USER)]
    # a folder's default list was given to the new file, and the old one had none
    if _ACCESS not in kept and _ACCESS in _names(new):
        os.removexattr(new, _ACCESS)
    for name in kept:
        os.setxattr(new, name, os.getxattr(old, name))


def _names(handle: int) -> list[str]:
    try:
        return os.listxattr(handle)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise
