"""A private PostgreSQL on a unix socket, and psql as the client that several sessions need."""

import glob
import os
import re
import signal

from .sql import CommandLine, SqlError, SqlServer, SqlSession, folder_for_server, user_for_server
from .tap import skip

ERROR = re.compile(r"^(?:psql:[^ ]* )?(?:ERROR|FATAL):  (?P<state>[0-9A-Z]{5}): (?P<message>.*)$")
SETTINGS = {"listen_addresses": "''", "fsync": "off", "max_prepared_transactions": "5", "deadlock_timeout": "200ms",
            "max_connections": "40", "shared_buffers": "16MB", "dynamic_shared_memory_type": "mmap"}


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    if not found:
        skip("PostgreSQL is not installed")
    return os.path.dirname(found[-1])


class PrivatePostgres(SqlServer):
    """Keeps all that it has in a folder of its own; everybody may log in as everybody, on this socket only."""

    end_by = signal.SIGINT

    def __init__(self):
        self.programs = programs()
        self.who = user_for_server("postgres")
        self.folder = folder_for_server("pawl-pg-", self.who)
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "log")
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale", "C.UTF-8", "-N")
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            for name, value in {**SETTINGS, "unix_socket_directories": f"'{self.folder}'"}.items():
                file.write(f"{name} = {value}\n")
        self.start([os.path.join(self.programs, "postgres"), "-D", self.data])

    def ping(self):
        return [os.path.join(self.programs, "pg_isready"), "-q", "-h", self.folder]

    def _run(self, name, *flags, text=None):
        return self.run([os.path.join(self.programs, name), *flags], text)

    def psql(self, *flags, database="app", user="postgres", text=None):
        """One run of psql, as in the README; what it prints. Raises when it does not end well."""
        return self._run("psql", "-X", "-h", self.folder, "-U", user, "-d", database, *flags, text=text)

    def load(self, path, database):
        """psql -f path, for a file that the server's user may not read: the checkout may be closed to others."""
        with open(path, encoding="utf-8") as file:
            return self.psql("-f", "-", text=file.read(), database=database)

    def dump(self, database, *flags):
        return self._run("pg_dump", "-h", self.folder, "-U", "postgres", *flags, database)

    def create_database(self, name):
        self.psql("-c", f"CREATE DATABASE {name}", database="postgres")

    def session(self, user="postgres", database="app"):
        return Session(self, user, database)


class Session(SqlSession):
    """One connection. A row comes as a tuple of texts, null as None."""

    def __init__(self, server, user, database):
        argv = [os.path.join(server.programs, "psql"), "-X", "-q", "-A", "-t", "-h", server.folder, "-U", user,
                "-d", database, "-v", "VERBOSITY=verbose", "-P", "null=(null)", "-F", "\x1f"]
        self.line = CommandLine(argv, lambda word: f"\\echo {word}")
        self.pid = int(self("SELECT pg_backend_pid()")[0][0])

    def start(self, statement):
        """Sends it and does not wait."""
        self.line.send(statement + ";")

    def answer(self):
        """The rows of what was started; raises the error that it ended with."""
        lines = self.line.answer()
        for number, line in enumerate(lines):
            match = ERROR.match(line)
            if match:
                raise SqlError(match["state"], match["message"], **_rest_of_error(lines[number + 1:]))
        return [tuple(None if value == "(null)" else value for value in line.split("\x1f")) for line in lines
                if not line.startswith(("NOTICE:", "WARNING:", "LOCATION:"))]


def _rest_of_error(lines):
    told = {}
    for line in lines:
        for word in ("DETAIL", "HINT"):
            if line.startswith(word + ":  "):
                told.setdefault(word.lower(), line.split(":  ", 1)[1])
    return told
