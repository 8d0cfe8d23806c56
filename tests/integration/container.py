# SPDX-License-Identifier: Apache-2.0
# Container mode: 'jobschedd --crontab FILE' fires entries, logs their output, forwards signals, and works as process 1.
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import JOBSCHEDD, case, main, need_program, need_root, wait_until

TIMEOUT = 120
UID = 12345


class Container:
    """A jobschedd with a table in a temporary directory. Its log is read from a file."""

    def __init__(self, table, *options, **variables):
        self.dir = tempfile.mkdtemp(prefix="container-")
        self.options, self.variables = options, variables
        self.path = os.path.join(self.dir, "table")
        self.write(table)
        self.process = None

    def write(self, table):
        with open(self.path, "w") as f:
            f.write(table)

    def command(self):
        return [JOBSCHEDD, "--foreground", "--crontab", self.path, "--log-format", "json", *self.options]

    def __enter__(self):
        with open(os.path.join(self.dir, "log"), "w") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **self.variables})
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir)

    def lines(self):
        with open(os.path.join(self.dir, "log")) as f:
            text = f.read()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_for(self, what, **members):
        """The first log line whose members begin with these values."""
        def found():
            for line in self.lines():
                if all(str(line.get(k, "")).startswith(str(v)) for k, v in members.items()):
                    return line
            assert self.process.poll() is None or not members, "jobschedd has ended: %s" % self.lines()
            return None
        return wait_until(what, TIMEOUT, found)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT)


@contextlib.contextmanager
def zone_with_a_minute_soon(seconds):
    """A time zone whose offset is so that a minute begins after this time."""
    offset = int(-(time.time() + seconds)) % 60
    header = b"TZif2" + bytes(15) + struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    body = struct.pack(">lbb", offset, 0, 0) + b"Now\0"
    with tempfile.TemporaryDirectory(prefix="zones-") as zones:
        os.mkdir(os.path.join(zones, "Test"))
        with open(os.path.join(zones, "Test", "Soon"), "wb") as f:
            f.write(header + body + header + body + b"\n<Now>-0:00:%02d\n" % offset)
        yield {"TZDIR": zones, "TZ": "Test/Soon"}


@case
def an_entry_runs_at_its_time_and_its_output_is_logged_with_job_and_line():
    table = "# first line\nGREETING=hello\n* * * * * cat; echo $GREETING $FROM_CONTAINER; echo no >&2; exit 3%in\n"
    with zone_with_a_minute_soon(3) as zone, Container(table, FROM_CONTAINER="world", **zone) as c:
        start = c.wait_for("the start", message="started")
        end = c.wait_for("the end", message="failed with exit code 3")
        assert start["line"] == 3 and start["job"].startswith("cat-") and start["run"] == 1, start
        assert end["level"] == "error" and end["job"] == start["job"], end
        output = [(x["stream"], x["output"]) for x in c.lines() if "output" in x and x["run"] == 1 and x["line"] == 3]
        assert sorted(output) == [("stderr", "no"), ("stdout", "hello world"), ("stdout", "in")], output
        assert c.end() == 0


@case
def a_table_of_errors_ends_the_program_with_status_78():
    for table, options, line in (("1 * * * * true\n61 * * * * true\n", (), 2), ("61 * * * * true\n", ("--crontab-mode", "cronie"), 1),
                                 ("1 * * * * true", (), 1), ("0 22-6 * * * true\n", ("--crontab-mode", "strict"), 1)):
        with Container(table, *options) as c:
            assert c.process.wait(TIMEOUT) == 78, (table, c.lines())
            errors = [x for x in c.lines() if x["level"] == "error" and "line" in x]
            assert errors[0]["line"] == line and errors[0]["column"] >= 1, errors
    with Container("61 * * * * true\n@reboot true\n", "--crontab-mode", "cronie") as c:
        c.wait_for("the good entry", message="succeeded")
        assert c.end() == 0
    missing = subprocess.run([JOBSCHEDD, "--crontab", "/no/such/table"], capture_output=True, text=True, timeout=TIMEOUT)
    assert missing.returncode == 78 and "cannot read the crontab '/no/such/table'" in missing.stdout, missing
    wrong = subprocess.run([JOBSCHEDD, "--crontab", "/no/such/table", "--crontab-mode", "vixie"], capture_output=True, timeout=TIMEOUT)
    assert wrong.returncode == 2, wrong


@case
def a_signal_is_passed_on_and_the_program_waits():
    table = "@reboot trap 'echo stopped; exit 0' TERM; trap 'echo asked' USR1; echo ready; while :; do sleep 0.1; done\n"
    with Container(table) as c:
        c.wait_for("the command", output="ready")
        c.process.send_signal(signal.SIGUSR1)
        c.wait_for("the other signal", output="asked")
        assert c.end() == 0
        assert any(x.get("output") == "stopped" for x in c.lines()), c.lines()
        assert any(x.get("message", "").startswith("succeeded") for x in c.lines()), c.lines()


@case
def a_second_signal_kills():
    with Container("@reboot trap '' TERM; echo ready; while :; do sleep 0.1; done\n") as c:
        c.wait_for("the command", output="ready")
        c.process.send_signal(signal.SIGTERM)
        c.wait_for("the first signal", message="stopping on signal 15")
        assert c.end() == 0
        assert any(x.get("message", "").startswith("ended by signal 9") for x in c.lines()), c.lines()


@case
def a_reload_reads_the_table_again():
    with Container("@reboot echo once\n1 2 3 4 * true\n") as c:
        c.wait_for("the start", message=c.path + ": 2 entries")
        c.write("1 2 3 4 * true\n1 2 3 5 * true\n@reboot echo once\n")
        c.process.send_signal(signal.SIGHUP)
        c.wait_for("the new table", message=c.path + ": 3 entries")
        c.write("nonsense\n")
        c.process.send_signal(signal.SIGHUP)
        c.wait_for("the refusal", message="the table was not read again")
        assert c.end() == 0
        assert len([x for x in c.lines() if x.get("output") == "once"]) == 1, c.lines()


@case
def metrics_are_served_if_asked():
    with Container("@reboot true\n@reboot false\n", "--metrics", "127.0.0.1:0") as c:
        address = c.wait_for("the address", message="metrics at ")["message"][len("metrics at "):]
        c.wait_for("the failure", message="failed with exit code 1")
        c.wait_for("the success", message="succeeded")
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            text = answer.read().decode()
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
        assert "jobsched_container_entries 2\n" in text, text
        for job, line, good, bad in (("line", 1, 1, 0), ("false", 2, 0, 1)):
            for result, count in (("succeeded", good), ("failed", bad)):
                assert re.search(r'^jobsched_container_runs_total\{job="%s-[0-9a-f]+",line="%d",result="%s"\} %d$' % (
                    job, line, result, count), text, re.M), text
        try:
            urllib.request.urlopen(address[:-len("/metrics")] + "/other", timeout=TIMEOUT)
            raise AssertionError("another path is served")
        except urllib.error.HTTPError as e:
            assert e.code == 404
        assert c.end() == 0
    for wrong in ("9090", "localhost:9090", "127.0.0.1:"):
        with Container("@reboot true\n", "--metrics", wrong) as c:
            assert c.process.wait(TIMEOUT) == 78, c.lines()


class Isolated(Container):
    """The same as process 1 of a PID namespace, with all file systems read-only, and a uid without an account."""

    def command(self):
        script = ("mount --make-rprivate / && mount -t tmpfs none /mnt && cp '%s' '%s' /mnt/ && chmod -R a+rX /mnt && "
                  "mount -t proc proc /proc && mount -o remount,ro /mnt && mount -o remount,ro,bind / && "
                  "for m in /tmp /var/tmp /dev/shm /run; do mount -t tmpfs -o ro none $m; done; "
                  "exec setpriv --reuid %d --regid %d --clear-groups env -u HOME -u TMPDIR /mnt/jobschedd --crontab /mnt/table "
                  "--log-format json --log-level debug") % (os.path.abspath(JOBSCHEDD), self.path, UID, UID)
        return ["unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c", script]


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


@case
def it_works_as_process_1_with_a_read_only_root_and_a_uid_without_an_account():
    need_root()
    need_program("unshare")
    need_program("setpriv")
    table = "@reboot echo $LOGNAME $HOME $(id -u) $PPID; (sleep 0.3 & exec true); touch /tmp/x || echo read-only\n"
    with Isolated(table) as c:
        c.wait_for("the output", output="%d / %d 1" % (UID, UID))
        c.wait_for("the read-only root", output="read-only")
        c.wait_for("the orphan", message="collected a process that a command left behind")
        first = children_of(c.process.pid)[0]
        wait_until("no zombie is left", TIMEOUT, lambda: not children_of(first))
        os.kill(first, signal.SIGTERM)
        assert c.process.wait(TIMEOUT) == 0, c.lines()


if __name__ == "__main__":
    main()
