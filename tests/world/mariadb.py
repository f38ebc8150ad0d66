"""A private MariaDB on a unix socket, and its client as the sessions."""

import os
import re
import shutil
import signal

from .sql import CommandLine, SqlError, SqlServer, SqlSession, folder_for_server, user_for_server
from .tap import skip

ERROR = re.compile(r"^ERROR (?P<number>\d+) \((?P<state>[0-9A-Z]{5})\)(?: at line \d+)?: (?P<message>.*)$")
FLAGS = ["--no-defaults", "--skip-networking", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0",
         "--innodb-log-file-size=16M", "--innodb-lock-wait-timeout=20", "--skip-log-bin", "--max-connections=60"]


class PrivateMariadb(SqlServer):
    """Keeps all that it has in a folder of its own; its accounts have no passwords, on this socket only."""

    end_by = signal.SIGTERM

    def __init__(self):
        # Debian has the server where only root's PATH looks.
        self.program = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if self.program is None or not all(shutil.which(name) for name in ("mariadb-install-db", "mariadb", "mariadb-admin")):
            skip("MariaDB is not installed")
        self.who = user_for_server("mysql")
        self.folder = folder_for_server("pawl-my-", self.who)
        self.data, self.log = os.path.join(self.folder, "data"), os.path.join(self.folder, "log")
        self.socket = os.path.join(self.folder, "s")
        self.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal",
                  "--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=16M"])
        self.start([self.program, *FLAGS, f"--datadir={self.data}", f"--socket={self.socket}", f"--tmpdir={self.folder}",
                    f"--pid-file={self.folder}/pid"], 60)

    def ping(self):
        return ["mariadb-admin", "--no-defaults", f"--socket={self.socket}", "-u", "root", "ping"]

    def client(self, *flags, user="root", text=None):
        """One run of the client, as in the README; what it prints. Raises when it does not end well."""
        return self.run(["mariadb", "--no-defaults", f"--socket={self.socket}", "-u", user, *flags], text=text)

    def session(self, user="root", database="shop"):
        return Session(self, user, database)


class Session(SqlSession):
    """One connection. A row comes as a tuple of texts, null as None."""

    def __init__(self, server, user, database):
        argv = ["mariadb", "--no-defaults", f"--socket={server.socket}", "-u", user, "--batch", "--raw", "--skip-column-names",
                "--unbuffered", "--force", "--skip-reconnect", "--default-character-set=utf8mb4", "--delimiter=//", database]
        self.line = CommandLine(argv, lambda word: f"\\! echo {word}")
        self.id = int(self.value("SELECT CONNECTION_ID()"))

    def start(self, statement):
        """Sends it and does not wait."""
        self.line.send(statement + " //")

    def answer(self):
        """The rows of what was started; raises the error that it ended with."""
        lines = self.line.answer()
        for line in lines:
            match = ERROR.match(line)
            if match:
                raise SqlError(match["state"], match["message"])
        return [tuple(None if value == "NULL" else value for value in line.split("\t")) for line in lines]
