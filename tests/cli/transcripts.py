"""Transcripts for tests: messages, permission requests, and `message.list` over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cli.fake_backend import Payload


def a_message(number: int, **members: Any) -> Payload:
    """A line of a transcript."""
    return {
        "id": f"m{number}",
        "author_type": "agent",
        "type": "message",
        "content": f"text {number}",
        **members,
    }


def paged(messages: list[Payload]) -> Callable[[Payload], Payload]:
    """`message.list` over these."""

    def page(payload: Payload) -> Payload:
        ids = [message["id"] for message in messages]
        begin = ids.index(payload["after"]) + 1 if "after" in payload else 0
        return {"messages": messages[begin : begin + payload.get("limit", 100)]}

    return page


def a_request(number: int, request: str, status: str = "pending") -> Payload:
    """A permission request in a transcript."""
    options = [
        {"option_id": "always", "kind": "allow_always", "name": "Always"},
        {"option_id": "once", "kind": "allow_once", "name": "Once"},
        {"option_id": "no", "kind": "reject_once", "name": "No"},
    ]
    metadata = {"request_id": request, "options": options, "status": status}
    return a_message(number, type="permission_request", content="Run it?", metadata=metadata)
