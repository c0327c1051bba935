"""Kandev's tools for agents, as an MCP server: who calls is known by the execution a call came from."""
