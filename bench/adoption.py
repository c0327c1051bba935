"""`kill -9` of the backend with live sessions, a new start, and how soon every session is in hand again.

Half of them are at work while nobody listens, and stamp what they say: such a session is in hand when the
client gets something that was said after the kill. The other half waits, and is in hand when it has
answered a message. Everything that was said, before, meanwhile and after, has to come.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.client import Client, connected
from bench.figures import Row, Spread
from bench.ground import Ground
from bench.program import STAMPING, Board, Kandev, Live, running
from bench.stamps import Stamps, lost_of

TALK = "100000 1 0.2"
"""Five chunks a second, until it is cancelled."""
WORD = "1 1 0"
POLL_S = 0.005
DEADLINE_S = 120.0


@dataclass
class Samples:
    """Seconds."""

    plain: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    talking: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    lost: int = 0


async def measure(ground: Ground) -> Sequence[Row]:
    """A home with nothing in it is the floor."""
    samples = Samples()
    for _ in range(ground.sizes.adoptions):
        async with running(ground.folder / "empty") as kandev:
            await kandev.signal(signal.SIGKILL)
            samples.plain.append(await kandev.start())
    async with running(ground.folder / "home") as kandev:
        async with connected(kandev.url) as client:
            sessions = await (await Board.of(client)).sessions(ground.sizes.adopted, STAMPING)
        for _ in range(ground.sizes.adoptions):
            await _die_and_adopt(kandev, sessions, samples)
    count = ground.sizes.adopted
    floor, of = Spread.of(samples.plain), "ready line of an empty home"
    budget = ground.budget(5, "p99")
    return [
        Row(f"ready line with {count} live sessions", "s", Spread.of(samples.ready), floor, of),
        Row("start until all that work are heard", "s", Spread.of(samples.talking), floor, of, budget),
        Row("start until all that wait have answered", "s", Spread.of(samples.waiting), floor, of, budget),
        Row("chunks lost over the death", "", samples.lost, budget=ground.budget(0)),
    ]


async def _die_and_adopt(kandev: Kandev, sessions: list[Live], samples: Samples) -> None:
    talking, waiting = sessions[::2], sessions[1::2]
    before = {live.id: Stamps() for live in talking}
    async with connected(kandev.url) as client:
        for live in talking:
            live.client = client
            await client.follow(live.id, before[live.id])
            await live.say(TALK)
        await _until(lambda: all(ear.last for ear in before.values()))
        killed = await kandev.signal(signal.SIGKILL)
    began = time.monotonic()
    samples.ready.append(await kandev.start())
    async with connected(kandev.url) as client:
        async with asyncio.TaskGroup() as group:
            ears = [group.create_task(_hear_again(client, live, before[live.id], killed)) for live in talking]
            said = [group.create_task(_answers(client, live)) for live in waiting]
        samples.talking.append(max(task.result() for task in ears) - began)
        samples.waiting.append(max([began, *(task.result() for task in said)]) - began)
        samples.lost += sum([await _silence(client, live) for live in talking])
        samples.lost += sum(ear.skipped for ear in before.values())


async def _hear_again(client: Client, live: Live, ear: Stamps, killed: float) -> float:
    """When something came that was said after the kill."""
    live.client = client
    first: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    heard = ear.last

    def hear(at: float, action: str, payload: dict[str, object]) -> None:
        ear(at, action, payload)
        said_at = at - ear.lags[-1] if ear.last > heard else 0.0
        if said_at > killed and not first.done():
            first.set_result(at)

    await client.follow(live.id, hear, since_seq=ear.seq)
    async with asyncio.timeout(DEADLINE_S):
        return await first


async def _answers(client: Client, live: Live) -> float:
    """When its agent's words were here."""
    live.client = client
    live.notes.forget()
    await client.follow(live.id, live.notes, since_seq=None)
    await live.say(WORD)
    first = await live.notes.output()
    await live.idle()
    return first.at


async def _silence(client: Client, live: Live) -> int:
    """Its turn is cancelled; how much of what it said the transcript lacks."""
    await client.ask("agent.cancel", session_id=live.id)
    page = await client.ask("message.list", session_id=live.id, limit=1000)
    said = [m["content"] for m in page["messages"] if m["author_type"] == "agent" and m["type"] == "message"]
    last = int(said[-1].split()[-1].partition(":")[0])
    return lost_of(said[-1], last)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():
            await asyncio.sleep(POLL_S)
