"""When a turn that the agent began by itself is over, while its journal has no room."""

import asyncio
from dataclasses import replace
from pathlib import Path

from kandev.wire import agentctl as wire
from tests.agentctl.server.hosts import QUICK, eventually, host_in


async def test_an_agent_whose_words_wait_for_room_is_not_silent(tmp_path: Path) -> None:
    async with host_in(tmp_path, replace(QUICK, journal_max_bytes=2000)) as host:
        await host.create()
        agent, instance = host.agent(), host.instances.get("e1")
        await agent.says("first")
        turn = instance.turns.current
        assert turn is not None
        while not instance.journal.unacknowledged_bytes >= 2000:
            await agent.says("more " * 20)
        await asyncio.sleep(QUICK.own_turn_silent_s * 1.5)  # its silence is decided, and its end waits too
        speaking = asyncio.create_task(agent.says("last"))
        await asyncio.sleep(QUICK.own_turn_silent_s * 1.5)
        instance.journal.acknowledge(instance.journal.last_seq)
        await speaking
        assert not turn.over.is_set(), "it has just spoken"
        await eventually(turn.over.is_set)
        *_, word, ended = await host.frames()
    assert isinstance(word, wire.MessageChunk) and word.text == "last"
    assert isinstance(ended, wire.TurnEnded) and ended.own_turn_id == word.own_turn_id
