"""The sidecar that owns all agent processes of one host; it shares only wire with the backend."""
