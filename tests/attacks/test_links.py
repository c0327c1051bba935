"""Links that lie where the administrator's commands write: an agent can put them into its service's home."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kandev.home import BACKEND, locked
from kandev.storage.copies import copy
from kandev.storage.files import give
from kandev.storage.restoring import restore
from kandev.storage.schema import HEAD
from tests.storage.schemas import lay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return lay(HEAD, tmp_path / "home" / "kandev.db")


@pytest.fixture
def given_away(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The administrator's `chown`s, by the file that they would have hit."""
    found: list[int] = []

    def chown(path: str | Path, uid: int, gid: int, *, follow_symlinks: bool = True) -> None:
        found.append(Path(path).stat(follow_symlinks=follow_symlinks).st_ino)

    def fchown(descriptor: int, uid: int, gid: int) -> None:
        found.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setattr(os, "fchown", fchown)
    return found


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_the_administrators_command_gives_nobodys_file_to_the_service(
    tmp_path: Path, given_away: list[int], link: Callable[[Path, Path], None]
) -> None:
    """Whoever can write in the home (an agent can) puts a link where the lock is."""
    victim, home = tmp_path / "shadow", tmp_path / "home"
    victim.write_text("root:*")
    home.mkdir()
    link(victim, home / BACKEND)
    with suppress(OSError), locked(home, BACKEND):
        pass
    assert victim.stat().st_ino not in given_away
    assert victim.read_text() == "root:*"


def test_a_link_in_a_copys_place_is_not_followed_when_it_is_given_away(
    tmp_path: Path, given_away: list[int]
) -> None:
    victim, copy = tmp_path / "shadow", tmp_path / "copy.partial"
    victim.write_text("root:*")
    copy.symlink_to(victim)
    give(copy, like=tmp_path)
    assert victim.stat().st_ino not in given_away


def test_what_a_restore_writes_down_goes_through_no_link(path: Path, tmp_path: Path) -> None:
    victim, made = tmp_path / "crontab", tmp_path / "copy.db"
    victim.write_text("root")
    copy(path, made, busy_s=1)
    path.with_name(f"{path.name}.restore.begun").symlink_to(victim)
    restore(made, path, busy_s=1)
    assert victim.read_text() == "root"
