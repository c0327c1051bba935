"""Tests of the mock agent as a process, and the small ACP client that they drive it with."""
