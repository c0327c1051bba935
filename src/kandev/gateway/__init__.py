"""Who asks us: HTTP, WebSocket and their errors."""
