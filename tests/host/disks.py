"""Disks that a test may fill, stop and break: a tmpfs, and an ext4 in a file.

Whoever may not mount skips. A disk is always given back: also a frozen one whose test was killed.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
"""linux/fs.h"""
PIECE = 1 << 16
SIZE_MB = 48
LOOP = "loop,errors=remount-ro"

THAWER = f"""
import fcntl, os, sys
folder = os.open(sys.argv[1], os.O_RDONLY)
print(flush=True)
sys.stdin.read()
try:
    fcntl.ioctl(folder, {FITHAW}, 0)
except OSError:
    pass
"""
"""Outlives a test that is killed, and thaws the disk then."""


class Disk:
    """One mounted disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, leave: int = 0) -> None:
        """Until nothing more goes in, but for so many bytes."""
        with self._ballast.open("ab", buffering=0) as file:
            size = PIECE
            while size:
                with suppress(OSError):
                    while file.write(b"\0" * size) == size:
                        pass
                size //= 2
            if leave:
                file.truncate(max(0, file.tell() - leave))

    def make_room(self) -> None:
        """As it was before it was filled."""
        self._ballast.unlink()


class Image(Disk):
    """An ext4 in a file."""

    def __init__(self, path: Path, file: Path) -> None:
        super().__init__(path)
        self._file = file

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Every write stands still, in the kernel."""
        helper = subprocess.Popen(
            [sys.executable, "-c", THAWER, str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert helper.stdin is not None and helper.stdout is not None
        try:
            helper.stdout.readline()
            self._ask(FIFREEZE)
            yield
        finally:
            with suppress(OSError):
                self._ask(FITHAW)
            helper.communicate()

    def fail(self) -> None:
        """As after an error of the medium: read-only from now on, also for files that are open."""
        subprocess.run(["mount", "-o", "remount,abort", str(self.path)], check=True)

    def mend(self) -> None:
        """What an administrator does then, when nobody uses it any more."""
        subprocess.run(["umount", str(self.path)], check=True)
        subprocess.run(["e2fsck", "-fy", str(self._file)], check=False, capture_output=True)
        subprocess.run(["mount", "-o", LOOP, str(self._file), str(self.path)], check=True)

    def _ask(self, request: int) -> None:
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, request, 0)
        finally:
            os.close(folder)


@contextmanager
def memory(path: Path, size_mb: int = SIZE_MB) -> Iterator[Disk]:
    """A tmpfs at `path`."""
    with _mounted(path, "-t", "tmpfs", "-o", f"size={size_mb}m,mode=700", "none"):
        yield Disk(path)


@contextmanager
def image(path: Path, size_mb: int = SIZE_MB) -> Iterator[Image]:
    """An ext4 at `path`, in a file beside it."""
    file = path.with_suffix(".img")
    with file.open("wb") as made:
        made.truncate(size_mb << 20)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(file)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"No ext4 can be made here ({error}): install e2fsprogs to run this test.")
    with _mounted(path, "-o", LOOP, str(file)):
        yield Image(path, file)


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """What is opened by its path from now on cannot be written; what is open can."""
    with _mounted(path, "--bind", str(path)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(path)], check=True)
        yield


@contextmanager
def _mounted(path: Path, *words: str) -> Iterator[None]:
    path.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", *words, str(path)], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"This machine lets us mount nothing ({done.stderr.strip()}): run the tests as root.")
    try:
        yield
    finally:
        # Lazily: what still has a file open there keeps only itself.
        subprocess.run(["umount", "-l", str(path)], check=True)
