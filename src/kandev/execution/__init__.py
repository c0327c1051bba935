"""Implementations of the execution port: where agents run, and the client of agentctl."""
