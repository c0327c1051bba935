"""All instances of one agentctl: creating, finding, stopping, deleting, and those that an earlier one left.

Not here: how one instance lives (`instance`), who may ask (`fences`, `server`).
"""

import asyncio
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import msgspec

from kandev.agentctl.dispatching import Claims
from kandev.agentctl.ending import end_left
from kandev.agentctl.fences import Fences
from kandev.agentctl.home import Home, boot_id
from kandev.agentctl.instance import Instance
from kandev.agentctl.journal import Journal, Meta
from kandev.agentctl.maker import Maker
from kandev.agentctl.refusals import Refused, Unsettled, invalid, unknown_instance
from kandev.agentctl.settings import Settings
from kandev.agentctl.tasks import Tasks
from kandev.wire import agentctl as wire

log = logging.getLogger(__name__)

Survivors = Callable[[str], list[wire.Process]]
"""What could not be ended of an execution that an earlier agentctl had."""

SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""An execution id becomes a folder's name."""


class Instances:
    """By execution id. `url` is agentctl's own. `close` before the event loop ends."""

    def __init__(self, home: Home, settings: Settings, maker: Maker, fences: Fences, url: str = "") -> None:
        self._home = home
        self._settings = settings
        self._maker = maker
        self._fences = fences
        self._url = url
        self._boot_id = boot_id()
        self._all: dict[str, Instance] = {}
        self._surviving: set[str] = set()
        self._tasks = Tasks()
        self._closing = False

    def __len__(self) -> int:
        return len(self._all)

    def all(self) -> list[Instance]:
        return list(self._all.values())

    def get(self, instance_id: str) -> Instance:
        """Raises Refused (404)."""
        if (instance := self._all.get(instance_id)) is None:
            raise unknown_instance(instance_id)
        return instance

    def find(self, instance_id: str) -> Instance:
        """As `get`, for a request that ends: an unknown id is fenced, so that a late create is refused."""
        try:
            return self.get(instance_id)
        except Refused:
            if SAFE_ID.fullmatch(instance_id):
                self._fences.bury(instance_id)
            raise

    async def create(self, spec: wire.CreateInstance) -> wire.Instance:
        """Answers when the launch is decided; a repeat joins it or finds what became of it. Goes on when
        the caller goes away. Raises Refused: 409 tombstone, 409 launch_failed (everything is torn down),
        422; Unsettled while agentctl ends."""
        self._fences.check_buried(spec.execution_id)
        instance = self._all.get(spec.execution_id)
        if instance is not None and _was_cut_off(instance):
            _nothing_beside(instance.stopped().survivors)
            instance.journal.drop()
            instance = None
        if instance is None:
            instance = self._begin(spec)
        await instance.ready.wait()
        if instance.state == "failed":
            raise instance.launch_failure()
        return instance.describe()

    def _begin(self, spec: wire.CreateInstance) -> Instance:
        if not SAFE_ID.fullmatch(spec.execution_id):
            raise invalid("An execution_id is 1 to 128 letters, digits, dots, dashes and underscores.")
        if not spec.command or not Path(spec.cwd).is_absolute():
            raise invalid("An instance needs a command and an absolute cwd.")
        if self._closing:
            raise Unsettled("This agentctl is ending; ask again, and the next one answers.")
        meta = Meta(
            journal_id=uuid4().hex,
            execution_id=spec.execution_id,
            session_id=spec.session_id,
            task_id=spec.task_id,
            boot_id=self._boot_id,
        )
        folder = self._home.journals / spec.execution_id
        try:
            shutil.rmtree(folder, ignore_errors=True)
            journal = Journal.create(folder, meta, self._settings.journal_max_bytes)
        except OSError as error:
            why = f"The journal {folder} cannot be written: {error.strerror or error}."
            raise Refused(409, "launch_failed", why) from error
        instance = self._all[spec.execution_id] = Instance(spec, journal, folder, self._maker, self._settings)
        instance.tunnel.url = f"{self._url}/instances/{spec.execution_id}/mcp"
        instance.begin()
        return instance

    async def stop(self, instance_id: str, *, force: bool) -> wire.Stopped:
        """Raises Refused (404, and the id is fenced)."""
        return await self.find(instance_id).stop(force=force)

    async def delete(self, instance_id: str, *, force: bool) -> wire.Stopped:
        """End it, fence its id, drop its journal. One with survivors stays until they are gone. Raises
        Refused (404, and the id is fenced), Unsettled."""
        instance = self.find(instance_id)
        stopped = await instance.stop(force=force)
        self._fences.bury(instance_id)
        if not stopped.survivors:
            self._drop(instance)
        elif instance_id not in self._surviving:
            self._surviving.add(instance_id)
            self._tasks.start(self._until_gone(instance), f"survivors of {instance_id}")
        return stopped

    async def _until_gone(self, instance: Instance) -> None:
        """What cannot be ended is not forgotten: it may be gone, or be ended, a while later."""
        while True:
            await asyncio.sleep(self._settings.survivors_again_s)
            try:
                if not (await instance.stop(force=True)).survivors:
                    break
            except OSError as error:  # nobody could look: that proves nothing
                log.warning("survivors could not be looked at: %s", error.strerror)
        log.info("the survivors are gone", extra={"ids": {"execution_id": instance.spec.execution_id}})
        self._surviving.discard(instance.spec.execution_id)
        self._drop(instance)

    def _drop(self, instance: Instance) -> None:
        if self._all.get(instance.spec.execution_id) is instance:
            del self._all[instance.spec.execution_id]
            instance.journal.drop()

    async def close(self) -> None:
        """End all agents, side by side; journals stay."""
        self._closing = True
        await self._tasks.close()
        async with asyncio.TaskGroup() as group:
            for instance in self.all():
                group.create_task(instance.stop(force=False))
        for instance in self.all():
            instance.journal.close()

    # -- what an earlier agentctl left ------------------------------------------------------------

    def adopt_journals(self, survivors_of: Survivors) -> None:
        """Its processes are ended; its journals can still be read and acknowledged. Those of an earlier
        boot are dropped: their newest frames may never have reached the disk, and their numbers would be
        given twice."""
        for folder in sorted(self._home.journals.iterdir()):
            if (journal := self._reopened(folder)) is None:
                continue
            if journal.meta.boot_id != self._boot_id:
                journal.drop()
                continue
            self._adopt(folder, journal, survivors_of(journal.meta.execution_id))

    def _reopened(self, folder: Path) -> Journal | None:
        """None: it was never finished or is damaged, and goes; or it cannot be read now, and stays."""
        try:
            return Journal.reopen(folder, self._settings.journal_max_bytes)
        except (FileNotFoundError, msgspec.DecodeError, ValueError) as error:
            log.warning("the journal %s is damaged and is dropped: %s", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            log.error("the journal %s cannot be read: %s", folder, error)
        return None

    def _adopt(self, folder: Path, journal: Journal, survivors: list[wire.Process]) -> None:
        meta = journal.meta
        spec = wire.CreateInstance(
            execution_id=meta.execution_id,
            session_id=meta.session_id,
            task_id=meta.task_id,
            protocol="acp",
            command=["-"],
            cwd="/",
        )
        instance = Instance(spec, journal, folder, self._maker, self._settings)
        taken, over = _read_ends(journal)
        claims = Claims(folder / "claims").load()
        for claim in claims:
            # One prompt at a time: every claim but the last was settled before the next was made.
            known = claim is not claims[-1] or claim.dispatch_id in taken
            instance.dispatching.remember(claim.dispatch_id, claim.generation, accepted=known)

        async def again(left: list[wire.Process]) -> list[wire.Process]:
            return await end_left(meta.execution_id, str(self._home.path), left, self._settings)

        instance.begin_ended(survivors, over, again)
        self._all[meta.execution_id] = instance


def _was_cut_off(instance: Instance) -> bool:
    """agentctl died during its launch, or before anybody made use of it; whoever asks for it again has never
    heard that it was ready."""
    return instance.inherited and instance.dispatching.untouched


def _nothing_beside(survivors: list[wire.Process]) -> None:
    """Raises Refused: nothing is begun beside what could not be ended."""
    if survivors:
        named = ", ".join(f"{left.pid} {left.command}" for left in survivors)
        raise Refused(409, "launch_failed", f"Processes of an earlier launch could not be ended: {named}.")


def _read_ends(journal: Journal) -> tuple[set[str], wire.ProcessExited | None]:
    """The dispatches whose prompts were journalled, and the last frame if it is there."""
    taken: set[str] = set()
    over: wire.ProcessExited | None = None
    seq = journal.acknowledged_seq + 1
    while lines := journal.read_from(seq):
        for number, line in lines:
            frame = wire.read_frame(line)
            if isinstance(frame, wire.PromptTaken):
                taken.add(frame.dispatch_id)
            over = frame if isinstance(frame, wire.ProcessExited) else None
            seq = number + 1
    return taken, over
