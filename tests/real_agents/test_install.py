"""What is installed is what is locked, from whichever registry, and a missing agent skips with a sentence."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from .bed import Bed, NotInstalledError
from .launch import LAUNCHES

FOLDER = Path(__file__).parent
NEEDED_WITHOUT_NPM = ("bash", "cat", "cut", "dirname", "sha256sum", "uname")


def test_the_lock_pins_every_package_and_names_no_registry() -> None:
    text = (FOLDER / "npm/package-lock.json").read_text(encoding="utf-8")
    packages = {name: one for name, one in json.loads(text)["packages"].items() if name}

    assert "://" not in text
    assert all(one["version"] and one["integrity"] for one in packages.values())


def test_the_wanted_versions_are_exact() -> None:
    wanted = json.loads((FOLDER / "npm/package.json").read_text(encoding="utf-8"))["dependencies"]

    assert all(version.replace(".", "").isdigit() for version in wanted.values())


def test_installing_without_npm_says_so_in_one_sentence(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in NEEDED_WITHOUT_NPM:
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    (tools / "uname").unlink()
    (tools / "uname").write_text('#!/bin/bash\n[ "$1" = -s ] && echo Linux || echo x86_64\n')
    (tools / "uname").chmod(0o755)
    result = subprocess.run(
        [tools / "bash", FOLDER / "install.sh", tmp_path / "agents"],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert result.returncode == 3
    assert "npm is missing" in result.stderr
    assert not (tmp_path / "agents").exists()


@pytest.mark.parametrize("name", sorted(LAUNCHES))
def test_a_missing_agent_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    bed = Bed(tmp_path / "bed", "http://127.0.0.1:1", installed=tmp_path / "nothing")

    with pytest.raises(NotInstalledError, match=rf"^{name} is not installed in .*install\.sh"):
        bed.agent(name)
