"""`kandev doctor` names what is missing and changes nothing."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from kandev.cli import examination
from tests.cli.conftest import Kandev
from tests.cli.fake_backend import FakeBackend


@pytest.fixture(autouse=True)
def a_free_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Settings whose port is free."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    monkeypatch.setenv("KANDEV_PORT", str(port))
    return port


def verdicts(kandev: Kandev, code: int) -> dict[str, tuple[str, str]]:
    """What is said of each thing."""
    ran = kandev("doctor", "--json")
    assert ran.code == code
    assert ran.json["ok"] is (code == 0)
    return {check["name"]: (check["verdict"], check["sentence"]) for check in ran.json["checks"]}


@pytest.mark.proves("CLI-doctor")
def test_a_machine_that_has_everything_is_fine(kandev: Kandev) -> None:
    found = verdicts(kandev, 0)

    assert {name for name, (verdict, _) in found.items() if verdict == "ok"} >= {
        "python",
        "git",
        "processes",
        "home",
        "port",
        "agentctl",
    }
    assert not kandev.home.exists()
    assert kandev("doctor").out.splitlines()[0].startswith("ok       python")


@pytest.mark.proves("CLI-doctor")
def test_a_missing_git_is_exit_code_1(
    kandev: Kandev, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    found = verdicts(kandev, 1)

    assert found["git"] == ("missing", "git is not on PATH; install it with the system's package manager.")
    assert found["agents"][0] == "note"


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        ("git version 2.11.0", "git 2.11.0 is too old; 2.25 or later is needed."),
        ("hello", "git does not say"),
    ],
)
def test_a_git_that_will_not_do_is_named(
    kandev: Kandev, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, sentence: str
) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin:/bin")

    verdict, said = verdicts(kandev, 1)["git"]

    assert (verdict, said.startswith(sentence)) == ("missing", True)


@pytest.mark.proves("CLI-doctor", "BAD-home-unwritable")
def test_a_home_that_cannot_be_used_and_a_wrong_setting_are_named(kandev: Kandev) -> None:
    kandev.home.write_text("a file")
    assert verdicts(kandev, 1)["home"][1].startswith(f"home: {kandev.home} is not a folder")

    kandev.home.unlink()
    kandev.home.mkdir()
    (kandev.home / "config.toml").write_text("prot = 1\n")
    assert "unknown key 'prot'" in verdicts(kandev, 1)["home"][1]


@pytest.mark.proves("CLI-doctor", "BAD-home-unwritable")
def test_a_home_that_cannot_be_made_is_named(kandev: Kandev, tmp_path: Path) -> None:
    ran = kandev("doctor", "--home", "/proc/kandev", "--json")
    found = {check["name"]: check for check in ran.json["checks"]}
    assert (ran.code, found["home"]["verdict"]) == (1, "missing")
    assert found["home"]["sentence"].startswith("/proc/kandev cannot be made in /proc (")

    (tmp_path / "file").write_text("a file")
    assert kandev("doctor", "--home", str(tmp_path / "file" / "deep" / "home")).code == 1


def test_a_home_that_is_not_there_is_tried_and_nothing_is_left(
    kandev: Kandev, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = kandev("doctor", "--home", str(tmp_path / "deep" / "home"))
    assert (ran.code, list(tmp_path.iterdir())) == (0, [])

    monkeypatch.setenv("KANDEV_PORT", "many")
    assert "KANDEV_PORT" in verdicts(kandev, 1)["home"][1]


@pytest.mark.proves("CLI-doctor")
def test_a_port_in_use_by_somebody_else_is_named(kandev: Kandev, a_free_port: int) -> None:
    with socket.create_server(("127.0.0.1", a_free_port)):
        verdict, said = verdicts(kandev, 1)["port"]

    assert verdict == "missing"
    assert said.startswith(f"127.0.0.1:{a_free_port} cannot be listened on")


def test_our_own_backend_and_agentctl_are_recognised(kandev: Kandev, backend: FakeBackend) -> None:
    (kandev.home / "agentctl.json").write_text(json.dumps({"url": backend.url}))

    found = verdicts(kandev, 0)

    assert found["backend"] == ("ok", f"A backend runs at {backend.url}.")
    assert found["agentctl"] == ("ok", f"agentctl answers at {backend.url}.")
    assert "port" not in found


def test_loose_permissions_and_a_dead_agentctl_are_notes(kandev: Kandev) -> None:
    kandev.home.mkdir(mode=0o755)
    (kandev.home / "agentctl.json").write_text(json.dumps({"url": "http://127.0.0.1:9"}))
    (kandev.home / "backend.json").write_text("{}")
    (kandev.home / "backend.json").chmod(0o644)

    ran = kandev("doctor")

    assert ran.code == 0
    assert f"chmod 700 {kandev.home}" in ran.out
    assert f"chmod 600 {kandev.home}/backend.json" in ran.out
    assert "does not answer; the backend starts another one" in ran.out


def test_a_proc_that_cannot_be_read_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hidden(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", hidden)

    assert next(examination.processes(tmp_path)).verdict == "missing"
