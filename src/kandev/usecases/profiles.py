"""Agent profiles: list, read, create, change, delete. Values of secret environment are written, never read
back.

A member of `env` is secret when `secret_env` names it or its own name says so. Not here: hiding them
(`core.payloads`), starting agents (`launch_session`). A command is looked at when it is launched, for it
may be installed later.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from kandev.core.board import Profile
from kandev.core.errors import Conflict, Invalid
from kandev.core.machines import OVER
from kandev.core.payloads import HIDDEN
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.workspaces import said

SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


@dataclass(frozen=True)
class NewProfile:
    """How to start an agent. `agent`: the known agent that it was found as."""

    name: str
    command: Sequence[str]
    protocol: Literal["acp", "codex"] = "acp"
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Sequence[str] = ()
    model: str | None = None
    mode: str | None = None
    auto_approve: bool = False
    mcp_servers: Sequence[dict[str, Any]] = ()
    auth_method: str | None = None
    withhold: Sequence[str] = ()
    cancel_acknowledge_s: float | None = None
    agent: str | None = None


async def list_profiles(ctx: Context) -> tuple[Profile, ...]:
    """By creation."""
    return await ctx.store.read(lambda tx: tuple(tx.profiles.list()))


async def get_profile(ctx: Context, *, id: str) -> Profile:
    """Raises NotFound."""
    return await ctx.store.read(lambda tx: finding.profile(tx, id))


async def create_profile(ctx: Context, new: NewProfile) -> Profile:
    """Raises Invalid."""
    row = build(ctx, new)

    def insert(tx: Tx) -> None:
        tx.profiles.insert(row)
        announcements.profile_changed(tx, row)

    await ctx.store.write(insert)
    return row


def build(ctx: Context, new: NewProfile) -> Profile:
    """A new row. Raises Invalid."""
    now = ctx.clock.now()
    row = Profile(
        id=ctx.ids.new("profile"),
        name=new.name,
        protocol=new.protocol,
        command=tuple(new.command),
        created_at=now,
        updated_at=now,
        env=dict(new.env),
        secret_env=tuple(new.secret_env),
        model=new.model,
        mode=new.mode,
        auto_approve=new.auto_approve,
        mcp_servers=tuple(new.mcp_servers),
        auth_method=new.auth_method,
        withhold=tuple(new.withhold),
        cancel_acknowledge_s=new.cancel_acknowledge_s,
        agent=new.agent,
    )
    return _checked(row, {}, ())


async def update_profile(ctx: Context, *, id: str, changes: Mapping[str, Any]) -> Profile:
    """`changes`: members of `NewProfile` but `agent`; `***` as a secret's value keeps the old one. Raises
    NotFound, Invalid."""
    now = ctx.clock.now()

    def change(tx: Tx) -> Profile:
        before = finding.profile(tx, id)
        row = replace(before, **_as_rows(changes), updated_at=now)
        row = _checked(row, before.env, before.mcp_servers)
        tx.profiles.update(row)
        announcements.profile_changed(tx, row)
        return row

    return await ctx.store.write(change)


def _as_rows(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lists become tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}


async def delete_profile(ctx: Context, *, id: str) -> None:
    """Raises NotFound; Conflict while a session that is not over uses it."""

    def change(tx: Tx) -> None:
        row = finding.profile(tx, id)
        sessions = [s for w in tx.workspaces.list() for s in tx.sessions.of_workspace(w.id)]
        using = [s.id for s in sessions if s.agent_profile_id == id and s.state not in OVER]
        if using:
            raise Conflict(
                f"Profile {row.name!r} is used by {len(using)} session(s); stop them first.",
                {"session_ids": using[:20]},
            )
        tx.profiles.delete(id)
        announcements.profile_changed(tx, row, deleted=True)

    await ctx.store.write(change)


def _checked(row: Profile, env: Mapping[str, str], servers: Sequence[Mapping[str, Any]]) -> Profile:
    """The row, complete. `env` and `servers` hold what `***` stands for."""
    if not row.command or not row.command[0].strip():
        raise Invalid(
            'The field `command` is empty; give the program and its arguments, e.g. ["opencode", "acp"].'
        )
    if any("\0" in word for word in row.command):
        raise Invalid("The field `command` holds a NUL character; take it out.")
    for name, value in row.env.items():
        if not name or "=" in name or "\0" in name + value:
            raise Invalid(f"The field `env` holds {name!r}, which cannot be in an environment.")
    secret = {n for n in row.env if n in row.secret_env or SECRET_NAME.search(n)}
    return replace(
        row,
        name=said(row.name, "name"),
        env=_restored(row.env, secret, env),
        secret_env=tuple(sorted(secret)),
        mcp_servers=tuple(_server(s, servers) for s in row.mcp_servers),
    )


def _restored(env: Mapping[str, str], secret: set[str], before: Mapping[str, str]) -> dict[str, str]:
    """With the old values where `***` stands for them."""
    whole = dict(env)
    for name in secret:
        if env[name] == HIDDEN:
            if name not in before:
                raise Invalid(
                    f"The secret {name!r} has no value to keep; write its value instead of {HIDDEN}."
                )
            whole[name] = before[name]
    return whole


def _server(given: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An MCP server, with the old values of its headers and environment where `***` stands for them."""
    name = given.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Invalid("The field `mcp_servers` holds a server without a `name`.")
    if not isinstance(given.get("command"), str) and not isinstance(given.get("url"), str):
        raise Invalid(f"The MCP server {name!r} needs a `command` or a `url`.")
    old = next((s for s in before if s.get("name") == name), {})
    server = dict(given)
    for member in ("headers", "env"):
        server |= {member: _values(given[member], old.get(member), name)} if member in given else {}
    return server


def _values(given: Any, old: Any, server: str) -> Any:
    known = _pairs(old)

    def kept(name: str, value: Any) -> Any:
        if value != HIDDEN:
            return value
        if name not in known:
            raise Invalid(f"{name!r} of the MCP server {server!r} has no value to keep; write it out.")
        return known[name]

    if isinstance(given, Mapping):
        return {k: kept(k, v) for k, v in given.items()}
    if isinstance(given, list) and all(
        isinstance(v, Mapping) and isinstance(v.get("name"), str) for v in given
    ):
        return [{**v, "value": kept(v["name"], v.get("value"))} for v in given]
    raise Invalid(
        f"Headers and environment of the MCP server {server!r} are an object, or a list of name and value."
    )


def _pairs(values: Any) -> dict[str, Any]:
    if isinstance(values, Mapping):
        return dict(values)
    return {v["name"]: v.get("value") for v in values or () if isinstance(v, Mapping) and "name" in v}
