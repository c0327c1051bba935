"""The transaction as `f(tx)` sees it: every noun on one connection."""

from sqlalchemy import Connection

from kandev.core.records import Notification
from kandev.ports import store
from kandev.ports.clock import Clock
from kandev.storage.sql.entries import SqlEntries
from kandev.storage.sql.executions import SqlExecutions
from kandev.storage.sql.messages import SqlMessages
from kandev.storage.sql.notes import SqlNotes
from kandev.storage.sql.notifications import SqlNotifications
from kandev.storage.sql.profiles import SqlProfiles
from kandev.storage.sql.repositories import SqlRepositories
from kandev.storage.sql.sessions import SqlSessions
from kandev.storage.sql.tasks import SqlTasks
from kandev.storage.sql.turns import SqlTurns
from kandev.storage.sql.workflows import SqlWorkflows
from kandev.storage.sql.workspaces import SqlWorkspaces


class SqlTx(SqlNotes):
    """See `ports.store.Tx`."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        super().__init__(connection)
        self.connection = connection
        notifications = SqlNotifications(connection, clock)
        self.workspaces: store.Workspaces = SqlWorkspaces(connection)
        self.repositories: store.Repositories = SqlRepositories(connection)
        self.workflows: store.Workflows = SqlWorkflows(connection)
        self.profiles: store.Profiles = SqlProfiles(connection)
        self.tasks: store.Tasks = SqlTasks(connection)
        self.sessions: store.Sessions = SqlSessions(connection)
        self.turns: store.Turns = SqlTurns(connection)
        self.entries: store.Entries = SqlEntries(connection)
        self.executions: store.Executions = SqlExecutions(connection)
        self.messages: store.Messages = SqlMessages(connection)
        self.notifications: store.Notifications = notifications
        self.added: list[Notification] = notifications.added
        """What is to be published after the commit."""
