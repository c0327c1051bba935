"""Two short pages without a script: what runs where, and the login.

Not here: the user interface.
"""

from dataclasses import dataclass
from html import escape
from typing import Final

from kandev.gateway.metrics import sessions_by_state
from kandev.ports.store import Tx

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

FRAME: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }}
dt {{ opacity: .7; }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
pre {{ white-space: pre-wrap; padding: .75rem; border: 1px solid; border-radius: .25rem; }}
input, button {{ font: inherit; padding: .4rem; max-width: 100%; box-sizing: border-box; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


@dataclass(frozen=True)
class About:
    """What runs where."""

    version: str
    url: str
    home: str


@dataclass(frozen=True)
class Counts:
    """How much there is."""

    workspaces: int
    tasks: int
    sessions: int
    running: int


def counts(tx: Tx) -> Counts:
    """Tasks without archived ones."""
    states = sessions_by_state(tx)
    working = states["RUNNING"] + states["STARTING"]
    return Counts(len(tx.workspaces.list()), len(tx.tasks.list()), states.total(), working)


def front(about: About, found: Counts) -> str:
    """The page at `/`."""
    rows = {
        "Version": about.version,
        "Address": about.url,
        "Home": about.home,
        "Workspaces": str(found.workspaces),
        "Tasks": str(found.tasks),
        "Sessions": f"{found.sessions}, {found.running} of them at work",
    }
    listed = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in rows.items())
    body = f"""<h1>Kandev</h1>
<p>The backend runs. It is used from the command line on this machine:</p>
<pre><code>kandev task create "Say hello" --agent mock --prompt "say hello" --start
kandev tail TASK
kandev --help</code></pre>
<dl>
{listed}
</dl>
<p>For programs: <a href="/openapi.json">/openapi.json</a> lists every request,
<a href="/health">/health</a> is for probes, <a href="/metrics">/metrics</a> for Prometheus.</p>"""
    return FRAME.format(title="Kandev", body=body)


def login(sentence: str = "") -> str:
    """The page at `/login`; `sentence` says why it is shown again."""
    told = f'<p role="alert">{escape(sentence)}</p>' if sentence else ""
    body = f"""<h1>Kandev</h1>
{told}
<form method="post" action="/login">
<p><label for="token">Access token</label></p>
<p><input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Log in</button></p>
</form>
<p>The backend showed the token when it was started, or it was set with KANDEV_TOKEN.</p>"""
    return FRAME.format(title="Kandev: log in", body=body)
