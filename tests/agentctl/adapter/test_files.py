"""`fs/*`: inside the worktree, and nowhere else."""

import os
from pathlib import Path

import pytest

from tests.agentctl.adapter.peer import Message, Stage


async def read(stage: Stage, path: object, **more: object) -> Message:
    return await stage.agent.ask("fs/read_text_file", {"sessionId": "s1", "path": path, **more})


async def write(stage: Stage, path: object, content: object = "new") -> Message:
    return await stage.agent.ask("fs/write_text_file", {"sessionId": "s1", "path": path, "content": content})


@pytest.mark.proves("ACP-fs")
async def test_a_file_is_written_with_its_folders_and_read_back(stage: Stage, worktree: Path) -> None:
    assert (await write(stage, f"{worktree}/a/b/c.txt", "é\r\ntwo\n"))["result"] == {}
    assert (worktree / "a/b/c.txt").read_bytes() == "é\r\ntwo\n".encode()
    assert (await read(stage, f"{worktree}/a/b/c.txt"))["result"] == {"content": "é\r\ntwo\n"}
    await write(stage, f"{worktree}/a/b/c.txt", "x")
    assert (worktree / "a/b/c.txt").read_text() == "x"


@pytest.mark.proves("ACP-fs")
@pytest.mark.parametrize(
    ("window", "content"),
    [
        ({"line": 2}, "two\r\nthree"),
        ({"line": 2, "limit": 1}, "two\r\n"),
        ({"limit": 1}, "one\n"),
        ({"line": 0, "limit": 1}, "one\n"),
        ({"line": 9}, ""),
        ({"limit": 0}, ""),
        ({"line": None, "limit": None}, "one\ntwo\r\nthree"),
    ],
)
async def test_a_window_of_lines_is_read(stage: Stage, worktree: Path, window: Message, content: str) -> None:
    (worktree / "f").write_bytes(b"one\ntwo\r\nthree")
    assert (await read(stage, str(worktree / "f"), **window))["result"] == {"content": content}


@pytest.mark.proves("ACP-fs")
async def test_everything_outside_the_worktree_is_refused(stage: Stage, worktree: Path) -> None:
    outside = worktree.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (worktree / "link").symlink_to(outside / "secret")
    (worktree / "folder").symlink_to(outside)
    (worktree / "dangling").symlink_to(outside / "new")
    (worktree.parent / "worktree-2").mkdir()
    places = [
        f"{worktree}/link",
        f"{worktree}/folder/secret",
        f"{worktree}/dangling",
        f"{worktree}/../outside/secret",
        f"{worktree}/sub/../../outside/secret",
        f"{worktree}-2/file",
        str(outside / "secret"),
        "/proc/self/environ",
        "link",
        "",
        None,
        7,
        f"{worktree}/nul\0",
    ]
    for place in places:
        for answer in (await read(stage, place), await write(stage, place)):
            assert answer["error"]["code"] == -32602, place
            assert answer["error"]["message"].endswith(".")
    assert (outside / "secret").read_text() == "secret"
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.proves("ACP-fs")
async def test_a_link_within_the_worktree_is_followed(stage: Stage, worktree: Path) -> None:
    (worktree / "real").write_text("old")
    (worktree / "link").symlink_to("real")
    await write(stage, f"{worktree}/link")
    assert (worktree / "real").read_text() == "new"
    assert (worktree / "link").is_symlink()


@pytest.mark.proves("ACP-fs")
async def test_what_is_no_regular_text_file_is_refused_with_a_sentence(stage: Stage, worktree: Path) -> None:
    os.mkfifo(worktree / "pipe")
    (worktree / "folder").mkdir()
    (worktree / "binary").write_bytes(b"\xff\xfe\x00")
    (worktree / "big").write_bytes(b"x" * 100_001)
    (worktree / "loop").symlink_to("loop")
    expected = {
        "pipe": "is not a regular file",
        "folder": "is not a regular file",
        "binary": "is not UTF-8 text",
        "big": "is larger than 100000 bytes",
        "missing": "does not exist",
        "loop": "",
    }
    for name, sentence in expected.items():
        error = (await read(stage, str(worktree / name)))["error"]
        assert sentence in error["message"], name
        assert (error["code"] == -32002) == (name == "missing")
    assert "error" in await write(stage, str(worktree / "pipe"))
    assert "error" in await write(stage, str(worktree / "folder"))


@pytest.mark.parametrize("params", [{"line": -1}, {"line": "1"}, {"limit": True}, {"limit": 1.5}], ids=str)
async def test_a_window_that_is_no_number_is_refused(stage: Stage, worktree: Path, params: Message) -> None:
    assert (await read(stage, str(worktree / "f"), **params))["error"]["code"] == -32602


async def test_content_that_is_no_text_or_too_much_is_refused(stage: Stage, worktree: Path) -> None:
    for content in (None, 5, ["x"]):
        assert (await write(stage, f"{worktree}/f", content))["error"]["code"] == -32602
    assert not (worktree / "f").exists()


async def test_files_before_the_conversation_exists_are_unknown(stages: object, worktree: Path) -> None:
    stage: Stage = stages()  # type: ignore[operator]
    assert (await read(stage, f"{worktree}/f"))["error"]["code"] == -32601
