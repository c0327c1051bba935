"""The files of a database: what lies beside it, who has it open, how they are written for good.

Never opened here while this process has the database open: closing a file takes away every lock that the
process holds on it (fcntl(2)). Not here: what is in them.
"""

import contextlib
import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import Final

BESIDE: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database, under its name: all of it belongs to that one file."""
PLAN: Final = ".restore"
"""And what a restore writes down beside it."""
SHARED: Final = (0x40000000, 512)
"""The bytes that whoever has it open locks (https://www.sqlite.org/fileformat.html, the lock-byte page)."""
FLOCK: Final = "hhqqi4x"
"""struct flock: kind, whence, start, length, pid."""
CANNOT_LINK: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def beside(database: Path, suffix: str) -> Path:
    """One of those."""
    return database.with_name(database.name + suffix)


def belongs(path: Path, database: Path) -> bool:
    """Whether the name is one that whoever opens the database looks for: nobody else may use it."""
    own = (*BESIDE, PLAN, f"{PLAN}.begun")
    return path.parent.resolve() == database.parent and path.name in {database.name + end for end in own}


def is_alone(database: Path) -> bool:
    """Whether nothing lies beside it, so that the file holds everything."""
    return not any(os.path.lexists(beside(database, suffix)) for suffix in BESIDE)


def holder(database: Path) -> int | None:
    """The pid of another process that has it open in the mode that Kandev uses, if there is one. OSError."""
    descriptor = os.open(database, os.O_RDONLY | os.O_CLOEXEC)
    try:
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, *SHARED, 0)
        kind, _, _, _, pid = struct.unpack(FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else int(pid)


def make_folder(folder: Path, *, like: Path) -> None:
    """For its owner only, who is the owner of `like`. OSError."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        give(folder, like=like)


def give(path: Path, *, like: Path) -> None:
    """To the owner of `like`, when we are the administrator: whose commands leave nothing behind that the
    service could not use. OSError."""
    if os.geteuid() == 0:
        owner = like.stat()
        # Whoever owns the folder may have put a link to somebody else's file there.
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def sync(path: Path) -> None:
    """On the disk when it returns: a file's content, or the names in a folder. OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def add_name(path: Path, name: Path) -> None:
    """A second name for a file, where the disk has such; else the only one. Never instead of something:
    FileExistsError. OSError."""
    try:
        os.link(path, name)
    except OSError as error:
        if error.errno not in CANNOT_LINK:
            raise
        if os.path.lexists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name)) from None
        path.rename(name)


def remove(database: Path) -> None:
    """The file and what lies beside it."""
    for path in (database, *(beside(database, suffix) for suffix in BESIDE)):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
