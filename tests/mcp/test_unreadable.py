"""A call that the door can carry and the backend cannot read is answered to whoever sent it: an answer
without the request's id is nobody's, and its client would wait for another one."""

from pathlib import Path

import pytest

from tests.agentctl.server.lanes import Client, events
from tests.mcp.clients import door_of

pytestmark = pytest.mark.proves("CTL-mcp")


@pytest.mark.parametrize(
    ("id", "arguments"), [("7", '{"limit": 1e999}'), ('"seven"', '{"limit": 1e999}'), ("9" * 5000, "{}")]
)
async def test_what_cannot_be_read_is_answered_under_its_own_id(
    tmp_path: Path, id: str, arguments: str
) -> None:
    params = f'{{"name": "list_tasks_kandev", "arguments": {arguments}}}'
    body = f'{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {params}}}'
    async with door_of(tmp_path) as host:
        response = await Client(host).send(body.encode())
        assert f'"id":{id},' in response.text and "cannot be read" in response.text
        after = await Client(host).send(b'{"jsonrpc": "2.0", "id": 8, "method": "ping"}')
    (pong,) = events(after)
    assert pong["id"] == 8 and "result" in pong
