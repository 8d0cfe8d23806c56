# SPDX-License-Identifier: Apache-2.0
# The commands of cron and at for tests: a System with the commands and the service of crontab.
import contextlib
import os
import shutil
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD
from system import System, write

BIN = "/usr/local/bin"
COMMANDS = ("at", "crontab", "jobsched-at-run", "jobsched-crontab")


class CronSystem(System):
    """System with the cron commands installed, and the service of crontab."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.groups["crontab"] = (4200, [])
        self.write_users()
        for program in COMMANDS:
            shutil.copy(os.path.join(BUILD, program), os.path.join(BIN, program + ".new"))
            os.rename(os.path.join(BIN, program + ".new"), os.path.join(BIN, program))
        for name in ("atq", "atrm", "batch"):
            with contextlib.suppress(FileExistsError):
                os.symlink("at", os.path.join(BIN, name))
        self.spool = os.path.join(self.dir, "crontabs")
        os.makedirs(self.spool)
        os.chown(self.spool, 0, 4200)
        os.chmod(self.spool, 0o1730)
        self.etc = os.path.join(self.dir, "etc")
        write(self.etc + "/at.deny", "", 0o640)
        self.tables = os.path.join(self.dir, "crontab.sock")
        self.env["JOBSCHED_CRONTAB_SOCKET"] = self.tables  # also for root, whose spool would be that of the machine
        self.service = None

    def start_tables(self, *prefix):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.tables)
        self.service = self.popen([*prefix, os.path.join(BIN, "jobsched-crontab"), "--socket", self.tables, "--spool", self.spool,
                                   "--etc", self.etc, "--stay"])
        self.wait_for(self.service, "jobsched-crontab listens", self.tables_answer)
        return self

    def tables_answer(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.tables) == 0

    def close(self, failed=False):
        if self.service and self.service.poll() is None:
            self.service.kill()
            self.service.wait()
        super().close(failed)

    def command(self, user, *words, stdin="", code=0, **env):
        env = dict(self.env, **env)
        old, self.env = self.env, env
        try:
            result = self.run_as(user, [os.path.join(BIN, words[0]), *words[1:]], input=stdin, timeout=60)
        finally:
            self.env = old
        assert result.returncode == code, (user, words, result.returncode, result.stdout, result.stderr)
        return result
