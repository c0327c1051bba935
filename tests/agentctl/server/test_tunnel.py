"""Tool calls travel from an agent to whoever has its lane, and their answers back: each answered once."""

import asyncio
import dataclasses
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from kandev.agentctl.tunnel.calls import Message
from kandev.wire import agentctl, mcp
from tests.agentctl.server.hosts import QUICK, Host, host_in
from tests.agentctl.server.lanes import Client, cancelled, complaint, events, lane, request

pytestmark = pytest.mark.proves("CTL-mcp")


async def open_instance(host: Host, execution: str = "e1") -> Client:
    await host.create(execution, mcp_mode="task")
    return Client(host, execution)


async def test_a_call_is_answered_over_the_lane_and_its_progress_comes_first(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        assert (await backend.next(mcp.McpLane)).calls == []
        asking = client.call(7)
        call = await backend.next(mcp.McpCall)
        assert (call.again, call.call_id.startswith("e1.")) == (False, True)
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
        await backend.answer(call, last=False, **note)
        await backend.answer(call)
        response = await asking
        assert response.headers["content-type"] == "text/event-stream"
        assert events(response) == [note, {"jsonrpc": "2.0", "id": 7, "result": {}}]
        assert await backend.next(mcp.McpServed) == mcp.McpServed(call_id=call.call_id, served=True)


async def test_a_client_that_takes_no_events_gets_one_document(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = client.call(1, Accept="application/json")
        call = await backend.next(mcp.McpCall)
        await backend.answer(call, last=False, jsonrpc="2.0", method="notifications/progress")
        await backend.answer(call)
        response = await asking
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_the_message_is_carried_as_it_came(host: Host) -> None:
    client = await open_instance(host)
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":123456789012345678901234567890}}'
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = asyncio.create_task(client.send(body, **{"MCP-Protocol-Version": "2025-06-18"}))
        call = await backend.next(mcp.McpCall)
        assert (bytes(call.message), call.version) == (body, "2025-06-18")
        await backend.answer(call)
        await asking


async def test_calls_wait_for_a_backend_and_come_again_when_the_lane_breaks(host: Host) -> None:
    client = await open_instance(host)
    asking = client.call(1)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        first = await backend.next(mcp.McpCall)
        backend.connection.transport.abort()
    async with lane(host) as backend:
        assert (await backend.next(mcp.McpLane)).calls == [first.call_id]
        again = await backend.next(mcp.McpCall)
        assert (again.call_id, again.again, first.again) == (first.call_id, True, False)
        await backend.answer(again)
        (response,) = events(await asking)
    assert response["result"] == {}


async def test_the_newest_lane_takes_over_what_is_open(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as older:
        await older.next(mcp.McpLane)
        asking = client.call(1)
        held = await older.next(mcp.McpCall)
        async with lane(host) as newer:
            await newer.next(mcp.McpLane)
            call = await newer.next(mcp.McpCall)
            with pytest.raises(ConnectionClosed) as closed:
                await older.next(mcp.McpCall)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == agentctl.STREAM_REPLACED
            assert call.call_id == held.call_id and call.again
            await newer.answer(call)
            await asking


async def test_a_lane_that_was_replaced_answers_nothing_any_more(host: Host) -> None:
    await open_instance(host)
    tunnel = host.instances.get("e1").tunnel

    class Silent:
        def put(self, document: mcp.FromAgent) -> None: ...
        def end(self, *, replaced: bool) -> None: ...

    older, newer = Silent(), Silent()
    call = tunnel.open(Message(method="tools/call"), b"{}", None, None)
    tunnel.attach(older)
    tunnel.attach(newer)
    stale = mcp.McpAnswer(call_id=call.id, message=msgspec.Raw(b'"stale"'), last=True)
    tunnel.answered(older, stale)
    fresh = mcp.McpAnswer(call_id=call.id, message=msgspec.Raw(b'"fresh"'), last=True)
    tunnel.answered(newer, fresh)
    assert await call.next() == (b'"fresh"', True)


async def test_without_a_backend_an_agent_hears_after_a_while_that_its_call_failed(tmp_path: Path) -> None:
    async with host_in(tmp_path, dataclasses.replace(QUICK, mcp_hold_s=0.05)) as host:
        client = await open_instance(host)
        (answer,) = events(await client.call(3))
        assert answer["id"] == 3
        assert complaint(answer).startswith("[INTERNAL_ERROR] Kandev's backend was away for 0.05 s")
        listing = await client.send(request(4, "tools/list"))
        assert events(listing)[0]["error"]["code"] == -32603
        async with lane(host) as backend:
            assert (await backend.next(mcp.McpLane)).calls == []


async def test_an_agent_that_goes_in_the_middle_of_its_call_has_left(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = client.call(1)
        call = await backend.next(mcp.McpCall)
        asking.cancel()
        assert await backend.next(mcp.McpLeft) == mcp.McpLeft(call_id=call.call_id)


async def test_a_lane_hears_what_became_of_calls_while_it_was_away(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = client.call(1)
        call = await backend.next(mcp.McpCall)
    asking.cancel()
    await asyncio.wait({asking})
    async with lane(host) as backend:
        # The connection's end may come a moment later than the lane.
        document = await backend.next(object)
        while not isinstance(document, mcp.McpLeft):
            document = await backend.next(object)
        assert document.call_id == call.call_id


async def test_a_cancelled_call_gets_no_answer(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = client.call("a")
        call = await backend.next(mcp.McpCall)
        assert (await client.send(cancelled("a"))).status_code == 202
        assert await backend.next(mcp.McpLeft) == mcp.McpLeft(call_id=call.call_id)
        assert events(await asking) == []


async def test_two_clients_of_one_agent_may_use_the_same_ids(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        names = []
        for number in range(2):
            hello = asyncio.create_task(client.send(request(number, "initialize")))
            await backend.answer(await backend.next(mcp.McpCall))
            names.append((await hello).headers["mcp-session-id"])
            await backend.next(mcp.McpServed)
        assert names[0] != names[1]
        asking = [client.call(5, **{"Mcp-Session-Id": name}) for name in names]
        calls = [await backend.next(mcp.McpCall) for _ in names]
        await client.send(cancelled(5), **{"Mcp-Session-Id": names[0]})
        left = (await backend.next(mcp.McpLeft)).call_id
        (other,) = [call for call in calls if call.call_id != left]
        await backend.answer(other)
        assert [len(events(await one)) for one in asking] == [0, 1]


async def test_a_cancel_that_fits_two_nameless_clients_ends_neither(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = [client.call(5), client.call(5)]
        calls = [await backend.next(mcp.McpCall) for _ in asking]
        await client.send(cancelled(5))
        for call in calls:
            await backend.answer(call)
        assert [len(events(await one)) for one in asking] == [1, 1]


async def test_a_client_that_says_goodbye_leaves_its_calls(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = client.call(5, **{"Mcp-Session-Id": "mine"})
        call = await backend.next(mcp.McpCall)
        assert (await client.send(b"", "DELETE", **{"Mcp-Session-Id": "mine"})).status_code == 204
        assert (await backend.next(mcp.McpLeft)).call_id == call.call_id
        await asking


async def test_two_hundred_open_calls_are_refused_clearly_beyond_the_bound(tmp_path: Path) -> None:
    async with host_in(tmp_path, dataclasses.replace(QUICK, mcp_calls=100)) as host:
        client = await open_instance(host)
        asking = [client.call(number) for number in range(200)]
        waiting = set(asking)
        while len(waiting) > 100:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                assert complaint(events(one.result())[0]).startswith("[INTERNAL_ERROR] Too many tool calls")
        async with lane(host) as backend:
            assert len((await backend.next(mcp.McpLane)).calls) == 100
            for call in [await backend.next(mcp.McpCall) for _ in range(100)]:
                await backend.answer(call)
            answers = [events(response) for response in await asyncio.gather(*asking)]
            assert [len(answer) for answer in answers] == [1] * 200


async def test_an_instances_end_answers_what_is_open_and_ends_the_lane(host: Host) -> None:
    client = await open_instance(host)
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        asking = client.call(1)
        await backend.next(mcp.McpCall)
        await host.stop()
        (answer,) = events(await asking)
        assert complaint(answer).startswith("[INTERNAL_ERROR] The execution is over")
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                await backend.next(object)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == agentctl.STREAM_DROPPED
    assert complaint(events(await client.call(2))[0]).startswith("[INTERNAL_ERROR] The execution is over")


async def test_a_lane_is_the_owners_and_of_a_living_instance_with_tools(host: Host) -> None:
    await host.create()
    await open_instance(host, "e2")
    for execution, epoch, status in (("e1", 1, 409), ("e2", 0, 412), ("e3", 1, 404)):
        await host.ask("GET", "/api/v1/instances")
        host.epoch = epoch
        with pytest.raises(InvalidStatus) as refused:
            async with lane(host, execution):
                pass
        assert refused.value.response.status_code == status
        host.epoch = 1
