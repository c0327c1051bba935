"""Attacks: what a hostile agent, client, repository or disk may not bring about."""
