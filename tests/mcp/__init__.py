"""Kandev's MCP server. The module has the package's name in its path only: `mcp` is the SDK."""
