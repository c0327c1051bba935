"""The database: `await store.write(f)` runs `f(tx)` in one transaction, `read(f)` in a snapshot.

`f` is synchronous and takes nothing but the transaction, so no await can lie between a check and the write
it allows. What was announced with `tx.notifications.add` is published after the commit, in commit order,
never before.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from kandev.core.board import Profile, Repository, Step, Task, Workflow, Workspace, Worktree
from kandev.core.records import (
    EntryRecord,
    ExecutionRecord,
    Notification,
    SessionRecord,
    StreamKind,
    TurnRecord,
)
from kandev.core.transcript import Message

T = TypeVar("T")
Row = TypeVar("Row")


class Table(Protocol[Row]):
    """What all nouns share. Lists are by creation, then id."""

    def get(self, id: str) -> Row | None: ...
    def insert(self, row: Row) -> None:
        """Raises StaleVersion when the id (or a unique member) is there already."""

    def update(self, row: Row) -> None:
        """Writes every column of the row with this id; one that is gone raises StaleVersion. Rows with a
        `version` are compared (`row.version` is what was read) and come out one higher; another version
        raises StaleVersion."""

    def delete(self, id: str) -> None:
        """Gone with all that belongs to it; unknown is fine."""


class Workspaces(Table[Workspace], Protocol):
    """Workspaces."""

    def list(self) -> Sequence[Workspace]: ...


class Repositories(Table[Repository], Protocol):
    """Repositories."""

    def list(self, workspace_id: str) -> Sequence[Repository]: ...


class Workflows(Table[Workflow], Protocol):
    """`insert` and `update` take the steps along (positions are renumbered from 0)."""

    def list(self, workspace_id: str) -> Sequence[Workflow]: ...
    def step(self, step_id: str) -> Step | None: ...


class Profiles(Table[Profile], Protocol):
    """Agent profiles."""

    def list(self) -> Sequence[Profile]: ...


class Tasks(Table[Task], Protocol):
    """Tasks, and where their agents work."""

    def list(
        self,
        *,
        workspace_id: str | None = None,
        workflow_id: str | None = None,
        parent_id: str | None = None,
        include_archived: bool = False,
        limit: int | None = None,
        after: str | None = None,
    ) -> Sequence[Task]:
        """By creation; `after` is the id of the last task of the page before."""

    def by_external_id(self, workspace_id: str, external_id: str) -> Task | None: ...
    def next_position(self, step_id: str) -> int: ...
    def places(self, step_id: str) -> Sequence[tuple[str, int]]:
        """The cards of a step that are not archived, in their order: `(id, position)`. The whole rows of a
        long column are many."""

    def owing(self) -> Sequence[str]:
        """Ids of the tasks whose step owes something (`owed_enter`)."""

    def worktree(self, task_id: str) -> Worktree | None: ...
    def set_worktree(self, worktree: Worktree) -> None: ...
    def children(self, task_id: str) -> Sequence[Task]: ...


class Sessions(Table[SessionRecord], Protocol):
    """Sessions with their values."""

    def of_task(self, task_id: str) -> Sequence[SessionRecord]:
        """Newest first."""

    def of_tasks(self, task_ids: Sequence[str]) -> Sequence[SessionRecord]:
        """Newest first, whichever task they belong to."""

    def of_workspace(self, workspace_id: str) -> Sequence[SessionRecord]: ...

    def alive(self) -> Sequence[str]:
        """Ids of the sessions whose value has an execution (launch not absent), a turn, a retry, or a queue
        that is neither parked nor held by a terminal outcome: the ones that need an actor at start."""


class Turns(Table[TurnRecord], Protocol):
    """Turns, oldest first."""

    def of_session(self, session_id: str) -> Sequence[TurnRecord]: ...


class Entries(Table[EntryRecord], Protocol):
    """Messages on their way."""

    def queue(self, session_id: str) -> Sequence[EntryRecord]:
        """`queued` and `claimed`, by place."""

    def by_key(self, task_id: str, sender_task_id: str | None, key: str) -> EntryRecord | None:
        """Unique in the store."""


class Executions(Table[ExecutionRecord], Protocol):
    """Executions, oldest first."""

    def of_session(self, session_id: str) -> Sequence[ExecutionRecord]: ...
    def with_survivors(self) -> Sequence[ExecutionRecord]: ...


class Messages(Protocol):
    """A session's transcript. `seq` is given by the store, growing by one per session."""

    def get(self, id: str) -> Message | None: ...
    def outline(self, id: str) -> tuple[Message, int] | None:
        """The message with an empty content, and how long that is in characters. Costs the same however
        long."""

    def add(self, message: Message) -> Message:
        """Inserts with the next `seq` (the given one is ignored) and returns what was stored."""

    def replace(self, message: Message) -> None:
        """Content, metadata and turn of the message with this id."""

    def append(self, id: str, text: str) -> int:
        """Adds to the content; returns the offset in characters at which `text` begins. Costs what `text`
        costs, however long the content is."""

    def page(
        self, session_id: str, *, limit: int, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        """Oldest first. `before`: the last `limit` ones before that message id; `after` or neither: the
        first ones. An id that is not of this session raises NotFound. Where messages are very long there are
        fewer of them, but one if there is any: only an empty page is the end."""

    def latest(self, session_id: str, limit: int) -> Sequence[Message]:
        """The last `limit` ones, oldest first; fewer where they are very long."""

    def find(self, session_id: str, type: str, key: str) -> Message | None:
        """The newest message of this type whose `metadata["key"]` is `key` (a tool call id, a request id, a
        turn's plan)."""


class Notifications(Protocol):
    """The durable streams of sessions and workspaces."""

    def add(self, stream: StreamKind, stream_id: str, action: str, payload: dict[str, Any]) -> None:
        """Takes the stream's next `seq`; published after the commit."""

    def since(self, stream: StreamKind, stream_id: str, seq: int) -> Sequence[Notification] | None:
        """All after `seq`, or None when some of them are no longer kept, all of them are more than a client
        would be sent, or `seq` is ahead of the stream."""

    def last(self, stream: StreamKind, stream_id: str) -> int:
        """The stream's present `seq`, 0 at its beginning."""

    def prune(self, keep: int) -> None:
        """Keep at least the newest `keep` of each stream."""

    def leap(self, seq: int) -> None:
        """Every stream goes on behind `seq` at least, and keeps nothing: whoever followed one reloads."""


class Tx(Protocol):
    """One transaction. Valid only inside the function it was given to."""

    workspaces: Workspaces
    repositories: Repositories
    workflows: Workflows
    profiles: Profiles
    tasks: Tasks
    sessions: Sessions
    turns: Turns
    entries: Entries
    executions: Executions
    messages: Messages
    notifications: Notifications

    def epoch(self) -> int: ...
    def next_epoch(self, above: int = 0) -> int:
        """The owner's epoch: higher than ever before, and than `above`."""

    def note(self, key: str) -> str | None:
        """A small durable fact by name (e.g. `first_start`)."""

    def set_note(self, key: str, value: str) -> None: ...


class Store(Protocol):
    """Raises StoreFault (busy, full, read-only, gone: a sentence), StaleVersion, and whatever `f` raises
    (then nothing is written). A write that was begun is finished although its caller is cancelled."""

    @property
    def damage(self) -> str | None:
        """A sentence from the moment on at which the database was found to be damaged: it is read where it is
        whole, and every write is refused. None: nothing is known against it."""

    @property
    def hindrance(self) -> str | None:
        """Why nothing can be written at present (a full, slow or read-only disk), as a sentence: from a write
        that failed for that reason, or a read that was not answered in time, to the next write that
        succeeds. None: nothing is known."""

    async def write(self, f: Callable[[Tx], T], deadline: float | None = None) -> T:
        """`deadline` in seconds (None: the store's setting); at it StoreFault, and the write may still
        happen later."""

    async def read(self, f: Callable[[Tx], T], deadline: float | None = None) -> T: ...

    async def close(self) -> None: ...


class Publisher(Protocol):
    """Where committed notifications go: called on the event loop, in commit order, never blocking."""

    def publish(self, notifications: Sequence[Notification]) -> None: ...
