"""Tasks with a repository and without: where the agent works, and what it changed there."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import add, get, git, profile, repository, repository_id, said, turns_over

WRITES = (
    "import json,sys\n"
    "from pathlib import Path\n"
    "for line in sys.stdin:\n"
    "    frame = json.loads(line)\n"
    "    result = {'initialize': {'protocolVersion': 1}, 'session/new': {'sessionId': 's'}}.get(\n"
    "        frame['method'], {'stopReason': 'end_turn'})\n"
    "    if frame['method'] == 'session/prompt':\n"
    "        Path('README.md').write_text('# Hello\\nchanged\\n')\n"
    "        Path('new.txt').write_text('one\\ntwo\\n')\n"
    "    print(json.dumps({'jsonrpc': '2.0', 'id': frame['id'], 'result': result}), flush=True)\n"
)
"""A tiny agent that changes two files of its working directory at each prompt."""


async def writer(house: Kandev) -> str:
    command = (await house.call("agent.profile.list"))["profiles"][0]["command"]
    return await profile(house, [command[0], "-c", WRITES])


@pytest.mark.proves("TREE-own", "TREE-changes", "ACT-session.changes", "ACT-session.diff")
async def test_a_task_with_a_repository_works_in_a_worktree_of_its_own(house: Kandev, tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    known = await repository_id(house, folder)
    head = git(folder, "rev-parse", "HEAD")
    task_id, session_id = await house.session(
        "go",
        repositories=[{"repository_id": known}],
        agent_profile_id=await writer(house),
        title="Fix the login page",
    )
    async with house.watching(session_id) as events:
        await turns_over(events)
    session = await get(house, session_id)
    tree = Path(session["worktree_path"])
    assert house.home in tree.parents
    assert git(tree, "rev-parse", "--abbrev-ref", "HEAD") == session["branch"] != "main"
    assert git(tree, "rev-parse", "HEAD") == head
    assert (tree / "new.txt").exists()
    assert git(folder, "status", "--porcelain") == "", "the repository itself is untouched"
    assert not (folder / "new.txt").exists()

    changes = await house.call("session.changes", {"session_id": session_id})
    assert sorted((f["path"], f["status"], f["additions"], f["deletions"]) for f in changes["files"]) == [
        ("README.md", "modified", 1, 0),
        ("new.txt", "untracked", 2, 0),
    ]
    whole = (await house.call("session.diff", {"session_id": session_id}))["diff"]
    assert "+changed" in whole and "+two" in whole
    one = (await house.call("session.diff", {"session_id": session_id, "path": "new.txt"}))["diff"]
    assert "+two" in one and "+changed" not in one
    for path in ("../outside", "/etc/passwd"):
        with pytest.raises(CallFailed) as refused:
            await house.call("session.diff", {"session_id": session_id, "path": path})
        assert refused.value.code == "VALIDATION_ERROR"

    deleted = await house.call("task.delete", {"id": task_id})
    assert deleted["worktree_kept"] == str(tree), "work that is not committed stays, and the answer says so"
    assert (tree / "new.txt").exists()


async def test_a_base_branch_of_the_tasks_choice_is_what_it_begins_at(house: Kandev, tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    git(folder, "checkout", "-q", "-b", "release")
    git(folder, "commit", "-q", "--allow-empty", "-m", "released")
    tip = git(folder, "rev-parse", "HEAD")
    git(folder, "checkout", "-q", "main")
    known = await repository_id(house, folder)
    _, session_id = await house.session(
        "say hello", repositories=[{"repository_id": known, "base_branch": "release"}]
    )
    async with house.watching(session_id) as events:
        await turns_over(events)
    tree = Path((await get(house, session_id))["worktree_path"])
    assert git(tree, "rev-parse", "HEAD") == tip
    assert (await house.call("session.changes", {"session_id": session_id}))["files"] == []


@pytest.mark.field("E31")
async def test_two_tasks_of_one_repository_do_not_meet(house: Kandev, tmp_path: Path) -> None:
    known = await repository_id(house, repository(tmp_path / "repo"))
    mine = await writer(house)
    of = {"repositories": [{"repository_id": known}], "title": "Same title"}
    _, first = await house.session("go", agent_profile_id=mine, **of)
    _, second = await house.session("say hello", **of)
    async with house.watching(first) as ones, house.watching(second) as twos:
        await turns_over(ones)
        await turns_over(twos)
    one, two = await get(house, first), await get(house, second)
    assert one["worktree_path"] != two["worktree_path"]
    assert one["branch"] != two["branch"]
    assert not (Path(two["worktree_path"]) / "new.txt").exists()


async def test_many_tasks_of_one_repository_that_start_at_once_all_get_their_worktree(
    house: Kandev, tmp_path: Path
) -> None:
    known = await repository_id(house, repository(tmp_path / "repo"))
    of = {"repositories": [{"repository_id": known}], "title": "Same title"}
    made = await asyncio.gather(*(house.session(f"say {n}", **of) for n in range(6)))
    trees = set()
    for number, (_, session_id) in enumerate(made):
        async with house.watching(session_id) as events:
            await turns_over(events)
        assert await said(house, session_id) == [str(number)]
        trees.add((await get(house, session_id))["worktree_path"])
    assert len(trees) == 6


async def test_a_worktree_that_somebody_removed_is_said_and_can_be_had_again(
    house: Kandev, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "repo")
    known = await repository_id(house, folder)
    task_id, session_id = await house.session("say one", repositories=[{"repository_id": known}])
    async with house.watching(session_id) as events:
        await turns_over(events)
        tree = Path((await get(house, session_id))["worktree_path"])
        await house.call("session.stop", {"session_id": session_id})
        await events.until("session.updated", lambda p: "execution" not in p["session"])
        shutil.rmtree(tree)
        await house.call("session.recover", {"session_id": session_id})
        await add(house, task_id, session_id, "say two")
        await events.until("session.turn.completed", lambda p: p["cause"] == "agent", after=len(events.seen))
    assert (await said(house, session_id))[-1] == "two"
    assert (tree / "README.md").exists()


@pytest.mark.proves("TREE-folder")
async def test_a_task_without_a_repository_has_a_folder_of_its_own(house: Kandev) -> None:
    task_id, session_id = await house.session("go", agent_profile_id=await writer(house))
    async with house.watching(session_id) as events:
        await turns_over(events)
    folder = Path((await get(house, session_id))["worktree_path"])
    assert house.home in folder.parents
    assert (folder / "new.txt").read_text() == "one\ntwo\n"
    changes = await house.call("session.changes", {"session_id": session_id})
    assert changes["files"] == [], "without a base there is nothing to compare with"
    assert await said(house, session_id, "system", "error") == []
    other, another = await house.session("say hello")
    async with house.watching(another) as events:
        await turns_over(events)
    assert (await get(house, another))["worktree_path"] != str(folder)
    assert task_id != other


@pytest.mark.proves("BAD-not-a-repository")
async def test_a_path_that_is_no_repository_is_named(house: Kandev, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "plain", tmp_path / "missing", tmp_path / "file", Path("relative/path")):
        with pytest.raises(CallFailed) as refused:
            await house.call(
                "repository.create", {"workspace_id": await house.workspace(), "local_path": str(path)}
            )
        assert (refused.value.status, refused.value.code) == (422, "VALIDATION_ERROR")
        assert str(path) in refused.value.message
        assert "\n" not in refused.value.message
    listed = await house.call("repository.list", {"workspace_id": await house.workspace()})
    assert listed["repositories"] == []
