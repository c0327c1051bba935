"""`kandev call`, and how every client command finds its backend."""

from __future__ import annotations

import io
import json
import socket
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Kandev
from tests.cli.fake_backend import FakeBackend, Refusal, running


@pytest.mark.proves("CLI-call")
def test_call_prints_the_payload_as_json(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["task.get"] = {"id": "t", "title": "Ünï"}

    ran = kandev("call", "task.get", '{"id": "t"}')

    assert (ran.code, ran.json, ran.err) == (0, {"id": "t", "title": "Ünï"}, "")
    assert ran.out.count("\n") == 1
    assert backend.payloads("task.get") == [{"id": "t"}]


@pytest.mark.proves("CLI-call")
def test_call_reads_its_payload_from_stdin(
    kandev: Kandev, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"a": null, "b": [1]}\n'))
    backend.answers["some.action"] = {"ok": True}

    assert kandev("call", "some.action", "-").json == {"ok": True}
    assert backend.payloads("some.action") == [{"a": None, "b": [1]}]


@pytest.mark.proves("CLI-call")
def test_a_failed_call_is_exit_code_1_and_the_error_object_on_stderr(
    kandev: Kandev, backend: FakeBackend
) -> None:
    def full(_: dict[str, object]) -> dict[str, object]:
        raise Refusal("CONFLICT", "The queue is full.", error="queue_full", max=10)

    backend.answers["message.add"] = full
    ran = kandev("call", "message.add", "{}")

    assert (ran.code, ran.out) == (1, "")
    details = {"error": "queue_full", "max": 10}
    assert json.loads(ran.err) == {"code": "CONFLICT", "message": "The queue is full.", "details": details}


@pytest.mark.parametrize("payload", ["{", "[]", "7", '"x"'])
def test_a_payload_that_is_no_json_object_is_wrong_usage(kandev: Kandev, payload: str) -> None:
    ran = kandev("call", "task.get", payload)

    assert ran.code == 2
    assert "payload" in ran.err


@pytest.mark.proves("CLI-find-backend")
def test_the_backend_is_found_by_url_then_environment_then_home(
    kandev: Kandev, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def who(name: str) -> FakeBackend:
        return FakeBackend({"who": {"i": name}})

    backend.answers["who"] = {"i": "home"}
    with running(who("flag")) as flag, running(who("environment")) as environment:
        assert kandev("call", "who").json == {"i": "home"}
        monkeypatch.setenv("KANDEV_URL", environment.url)
        assert kandev("call", "who").json == {"i": "environment"}
        assert kandev("call", "who", "--url", flag.url + "/").json == {"i": "flag"}


@pytest.mark.proves("CLI-find-backend")
def test_the_token_comes_from_the_home_for_its_own_backend_only(
    kandev: Kandev, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kandev("call", "health.check").code == 0
    assert kandev("call", "health.check", "--url", backend.url).code == 0

    backend.note(kandev.home)
    elsewhere = kandev("call", "health.check", "--url", backend.url.replace("127.0.0.1", "localhost"))
    assert (elsewhere.code, json.loads(elsewhere.err)["code"]) == (1, "UNAUTHORIZED")

    monkeypatch.setenv("KANDEV_TOKEN", "secret-token")
    assert kandev("call", "health.check", "--url", backend.url.replace("127.0.0.1", "localhost")).code == 0


@pytest.mark.proves("BAD-no-traceback")
def test_without_a_backend_a_sentence_says_how_to_start_one(kandev: Kandev, tmp_path: Path) -> None:
    nowhere = kandev("task", "list")
    assert nowhere.code == 1
    assert nowhere.err == (
        f"kandev: No backend runs in {kandev.home}; start one with `kandev serve`, or name one with --url.\n"
    )

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gone = kandev("task", "list", "--url", f"http://127.0.0.1:{port}")
    assert gone.code == 1
    assert gone.err.startswith(f"kandev: No backend answers at http://127.0.0.1:{port}")

    wrong = kandev("task", "list", "--url", "localhost:1")
    assert (wrong.code, "is no http:// or https:// URL" in wrong.err) == (1, True)

    kandev.home.mkdir()
    (kandev.home / "backend.json").write_text("{")
    broken = kandev("task", "list")
    assert (broken.code, "cannot be read" in broken.err) == (1, True)


def test_what_is_no_kandev_backend_is_said(kandev: Kandev) -> None:
    with running(FakeBackend(plain=True)) as other:
        ran = kandev("call", "health.check", "--url", other.url)

    assert ran.code == 1
    assert f"What answers at {other.url} is no Kandev backend (HTTP 502)" in ran.err


def test_a_backend_that_does_not_answer_is_given_up_at_the_deadline(kandev: Kandev) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        ran = kandev("call", "health.check", "--url", f"http://127.0.0.1:{port}", "--timeout", "0.2")

    assert ran.code == 1
    assert "did not answer health.check within 0.2 s; it may still be done" in ran.err


def test_an_error_is_a_sentence_for_people_and_an_object_for_programs(
    kandev: Kandev, backend: FakeBackend
) -> None:
    def refuse(_: dict[str, object]) -> dict[str, object]:
        raise Refusal("VALIDATION_ERROR", "There is no state NAPPING.")

    backend.answers["task.state"] = refuse
    people = kandev("task", "state", "aa11", "napping")
    programs = kandev("task", "state", "aa11", "napping", "--json")

    assert (people.code, people.err) == (1, "kandev: There is no state NAPPING.\n")
    assert (programs.code, json.loads(programs.err)["code"]) == (1, "VALIDATION_ERROR")
