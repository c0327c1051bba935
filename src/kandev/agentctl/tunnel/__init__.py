"""The MCP server of each instance, tunnelled to the backend: tools are not understood here."""
