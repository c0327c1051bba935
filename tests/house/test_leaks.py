"""The net under every test holds: what a test leaves behind, or where it should not go, fails it.

Planted tests run in a pytest of their own, with the real fixtures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _outcome(folder: Path, planted: str) -> str:
    """Run one planted test module; what pytest printed."""
    head = "import asyncio, os, socket, subprocess, sys, threading\n"
    file = folder / "test_planted.py"
    file.write_text(head + textwrap.dedent(planted))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(folder),
    ]
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "--basetemp", str(folder / "run"), str(file)]
    done = subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, "TEST_GRACE_S": "0.2"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_clean_test_passes(tmp_path: Path) -> None:
    text = _outcome(
        tmp_path,
        """
        def test_sync(): subprocess.run(["true"], check=True)
        async def test_async():
            process = await asyncio.create_subprocess_exec("true")
            await process.wait()
            server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
            server.close()
            await server.wait_closed()
        """,
    )
    assert "2 passed" in text, text
    assert "error" not in text, text


LEAKS = {
    "a child process": (
        r"process \d+ \(sleep 60\) is left behind",
        "def test_it(): subprocess.Popen(['sleep', '60'])",
    ),
    "a child that nobody waited for": (
        r"process \d+ \(ended, but nobody waited for it\) is left behind",
        "def test_it():\n    global p; p = subprocess.Popen(['true'])",
    ),
    "a marked process that left its parent": (
        r"process \d+ \(sleep 61\) is left behind",
        "def test_it(tmp_path):\n"
        "    subprocess.run('setsid sleep 61 >/dev/null 2>&1 &', shell=True, check=True,\n"
        "        env={**os.environ, 'KANDEV_HOME': str(tmp_path)})",
    ),
    "a thread": (
        r"thread planted is left behind",
        "def test_it():\n"
        "    wait = threading.Event().wait\n"
        "    threading.Thread(target=wait, args=(20,), name='planted', daemon=True).start()",
    ),
    "a listening socket": (
        r"a socket listening at \('127.0.0.1', \d+\) is left behind",
        "kept = []\ndef test_it(): kept.append(socket.create_server(('127.0.0.1', 0)))",
    ),
    "a task of the loop": (
        r"these tasks are left behind: <coroutine object sleep",
        "kept = []\nasync def test_it(): kept.append(asyncio.create_task(asyncio.sleep(60)))",
    ),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_what_a_test_leaves_behind_fails_it(kind: str, tmp_path: Path) -> None:
    sentence, planted = LEAKS[kind]
    text = _outcome(tmp_path, planted)
    assert re.search(sentence, text), text
    assert "1 passed, 1 error" in text, text


def test_a_connection_beyond_loopback_is_refused(tmp_path: Path) -> None:
    text = _outcome(tmp_path, "def test_it(): socket.create_connection(('192.0.2.1', 9), timeout=1)")
    assert "Tests use loopback only; this one wanted to reach ('192.0.2.1', 9)" in text


def test_a_test_has_a_home_of_its_own_and_no_settings_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANDEV_PORT", "1")
    text = _outcome(
        tmp_path,
        f"""
        def test_it():
            assert os.environ["HOME"].startswith({str(tmp_path)!r})
            assert "KANDEV_PORT" not in os.environ
        """,
    )
    assert "1 passed" in text, text
