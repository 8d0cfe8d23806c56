# SPDX-License-Identifier: Apache-2.0
# A temporary PostgreSQL server from Debian's packages.
import os
import pwd
import shutil
import subprocess
import tempfile

from harness import Skip

BIN = "/usr/lib/postgresql"


class Server:
    """A temporary server. It listens on a Unix socket, and runs as user postgres if the test runs as root."""

    def __init__(self, listen="", before=()):
        """'listen' is an address for TCP connections; 'before' is a command prefix (nsenter)."""
        versions = sorted(os.listdir(BIN)) if os.path.isdir(BIN) else []
        if not versions:
            raise Skip("needs Debian's postgresql")
        self.bin = os.path.join(BIN, versions[-1], "bin")
        self.server_bin = os.environ.get("JOBSCHED_PG_BIN", self.bin)  # see tests/nemesis/versions.py
        self.dir = tempfile.mkdtemp(prefix="jobsched-pg.")
        self.data = os.path.join(self.dir, "data")
        self.listen = listen
        self.before = list(before)
        self.connections = 40
        self.user = []
        if os.geteuid() == 0:
            who = pwd.getpwnam("postgres")
            os.chown(self.dir, who.pw_uid, who.pw_gid)
            self.user = ["setpriv", "--reuid", str(who.pw_uid), "--regid", str(who.pw_gid), "--clear-groups"]
        self.call("initdb", "-D", self.data, "-U", "jobsched", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.url = "postgresql://jobsched@/postgres?host=" + self.dir

    def call(self, program, *words):
        where = self.server_bin if program in ("initdb", "pg_ctl", "postgres") else self.bin
        done = subprocess.run([*self.before, *self.user, os.path.join(where, program), *words], cwd="/", text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        assert done.returncode == 0, (program, done.stdout)
        return done.stdout

    def sql(self, text):
        """Runs a statement and returns its rows, each a list of texts."""
        out = self.call("psql", "-X", "-q", "-A", "-t", "-F", "\t", "-h", self.dir, "-U", "jobsched", "-c", text, "postgres")
        return [line.split("\t") for line in out.splitlines()]

    def start(self):
        self.call("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", os.path.join(self.dir, "log"), "-o",
                  "-c listen_addresses='%s' -c unix_socket_directories='%s' -c max_connections=%d" % (self.listen, self.dir, self.connections), "start")
        return self

    def stop(self, mode="immediate"):
        self.call("pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", mode, "stop")

    def __enter__(self):
        return self.start()

    def __exit__(self, *what):
        try:
            self.stop()
        except AssertionError:
            pass  # the server is already down
        shutil.rmtree(self.dir, ignore_errors=True)
