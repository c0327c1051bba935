"""Promises about the tools that agents get, with their ids. Not here: the manifest itself (`requirements`)."""

from __future__ import annotations

from typing import Final

MCP: Final = """
MCP-closed-schemas: Unknown, missing or mistyped arguments are tool errors that name the argument.
MCP-message-task: message_task_kandev answers queued, sent or started.
MCP-context-block: The first prompt carries the context block, in step with schemas and documentation.
"""
