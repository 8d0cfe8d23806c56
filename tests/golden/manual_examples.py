# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the manual pages and compares their output with the pages.

A line '$ COMMAND' in a literal block of EXAMPLES is a command, lines '> ...' continue it, and the lines after it are its
output. Without output lines, only the exit status is checked. Lines with the prompt '#' are for root and are not run.
In output for a terminal, times and durations match any time and duration, '…' matches the rest of a cell or line, and a
line '...' matches any number of lines. Output for a pipe must be the same as in the page. The commands of a page share
a shell and a home directory. For some pages the test starts a daemon; the others start their own or need none.
"""
import contextlib
import fcntl
import os
import pathlib
import pty
import pwd
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
MAN = pathlib.Path(os.environ.get("top_srcdir", ".")) / "man"
COLUMNS = 76
PATIENCE = 120  # seconds for one command
NO_END = -1     # the exit status of a command that takes longer; the rest of its page is not run

# page, whether the test starts a daemon, whether the output goes to a terminal, the least number of examples
PAGES = (
    ("jobctl.1", True, True, 15),
    ("jobsched-policies.7", True, True, 20),
    ("jobsched-cluster.7", False, True, 10),
    ("jobsched-command.7", True, True, 8),
    ("jobsched-executors.7", True, True, 3),
    ("jobsched-metrics.7", True, True, 3),
    ("jobsched-net.8", True, True, 2),
    ("jobsched-sandbox.7", True, True, 5),
    ("jobsched-spawner.8", False, True, 5),
    ("jobsched-time.7", False, False, 15),
    ("jobschedd.8", False, True, 3),
    ("jobschedd.conf.5", False, True, 2),
)


# ---- reading a page ----

def literal_lines(text):
    """The lines of the literal blocks in EXAMPLES; None between two blocks."""
    examples = literal = False
    for line in text.splitlines():
        if line.startswith(".Sh "):
            examples = line == ".Sh EXAMPLES"
        elif line.startswith(".Bd -literal"):
            literal = True
        elif line.startswith(".Ed"):
            literal = False
            yield None
        elif literal and examples:
            yield line.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")


def examples(text):
    """(command, output lines) of every '$ COMMAND'."""
    command, output = None, []
    for line in [*literal_lines(text), None]:
        begins = line is None or line[:2] in ("$ ", "# ")
        if begins and command:
            yield command, output
        if begins:
            command, output = (line[2:] if line and line[0] == "$" else None), []
        elif command and line.startswith(">") and not output:
            command += "\n" + line[2:]
        else:
            output.append(line)


# ---- comparing ----

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
SPAN = r"(?:in )?\d+(?:\.\d+)?(?:ms|[smhdw])(?:\d+[smh])?(?: ago)?(?![\w/])|\bnow\b"


def pattern(line):
    """A regular expression for one line of expected output."""
    out = ""
    for token in re.split(r"(%s|%s|…|\s+)" % (TIME, SPAN), line.rstrip()):
        if re.fullmatch(TIME, token):
            out += TIME
        elif re.fullmatch(SPAN, token):
            out += "(?:%s)" % SPAN
        elif token == "…":
            out += ".*"
        elif token.isspace():
            out += r"\s+"
        else:
            out += re.escape(token)
    return out


def matches(want, got):
    """True if the lines 'got' match the lines of the page."""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and re.fullmatch(pattern(want[0]), got[0].rstrip()) is not None and matches(want[1:], got[1:])


def anonymous(line):
    """The pages are written for the user 'alice' on the host 'h1'."""
    for name, shown in ((pwd.getpwuid(os.getuid()).pw_name, "alice"), (socket.gethostname(), "h1")):
        line = re.sub(r"(?<![\w.-])%s(?![\w.-])" % re.escape(name), shown, line)
    return line


# ---- running ----

class Shell:
    """A shell whose commands write to a terminal or to a pipe. The end of each command is marked with its exit status."""

    MARK = re.compile(rb"\x01(\d+)\x02\r?\n")

    def __init__(self, env, home, terminal):
        self.terminal = terminal
        self.input, theirs = os.pipe()[::-1]
        if terminal:
            self.output, out = pty.openpty()
            fcntl.ioctl(out, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        else:
            self.output, out = os.pipe()
        self.process = subprocess.Popen(["bash", "--norc"], stdin=theirs, stdout=out, stderr=out, env=env, cwd=home,
                                        start_new_session=True)
        os.close(theirs)
        os.close(out)

    def run(self, command):
        """The exit status and the lines that the command wrote."""
        script = "{ %s\n} </dev/null; printf '\\001%%d\\002\\n' $?\n" % command
        os.write(self.input, script.encode())
        said, end = b"", time.monotonic() + PATIENCE
        while not self.MARK.search(said):
            ready, _, _ = select.select([self.output], [], [], max(0, end - time.monotonic()))
            part = os.read(self.output, 65536) if ready else b""
            if not part:
                return NO_END, ["(the command did not end)", *said.decode(errors="replace").splitlines()]
            said += part
        mark = self.MARK.search(said)
        return int(mark.group(1)), said[:mark.start()].decode(errors="replace").replace("\r\n", "\n").splitlines()

    def close(self):
        os.close(self.input)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait()
        os.close(self.output)


class Place:
    """A home directory for the examples of one page, and the processes that they start."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="jobsched-man.")
        self.env = {name: os.environ[name] for name in ("TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TZDIR")
                    if name in os.environ}
        self.env.update(PATH=BUILD + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", TERM="dumb", TZ="UTC", LC_ALL="C.UTF-8")
        for name, sub in (("HOME", "home"), ("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")):
            self.env[name] = os.path.join(self.dir, sub)
            os.mkdir(self.env[name], 0o700)
        os.mkdir(os.path.join(self.dir, "config", "jobsched"))
        # mail is accepted and discarded
        with open(os.path.join(self.dir, "config", "jobsched", "jobschedd.conf"), "w") as f:
            f.write("sendmail = /bin/true\n")

    def start_daemon(self):
        with open(os.path.join(self.dir, "log"), "w") as log:
            subprocess.Popen([os.path.join(BUILD, "jobschedd"), "--user"], env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log)
        self.wait_for_daemon()

    def wait_for_daemon(self, *options):
        end = time.monotonic() + 60
        while subprocess.run([os.path.join(BUILD, "jobctl"), *options, "status"], env=self.env,
                             capture_output=True).returncode != 0:
            if time.monotonic() > end:
                sys.exit("Bail out! a daemon does not answer")
            time.sleep(0.05)

    def processes(self):
        """The processes whose environment or arguments name this directory."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(entry.name) != os.getpid() and any(
                        self.dir.encode() in (entry / name).read_bytes() for name in ("cmdline", "environ")):
                    yield int(entry.name), (entry / "comm").read_text().strip()

    def end_processes(self, comm):
        for pid, name in self.processes():
            if comm in (name, None):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + 20
        while any(comm in (name, None) for _, name in self.processes()) and time.monotonic() < end:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            time.sleep(0.05)

    def close(self):
        """Ends the daemons first, because they would start a new spawner."""
        self.end_processes("jobschedd")
        self.end_processes(None)
        shutil.rmtree(self.dir, ignore_errors=True)


# ---- the pages ----

class Report:
    def __init__(self):
        self.number = 0

    def point(self, ok, name, *details):
        self.number += 1
        print(f"{'ok' if ok else 'not ok'} {self.number} - {name}")
        for line in () if ok else details:
            print("# " + line)
        sys.stdout.flush()


def expects_failure(want):
    """jobsched-time(7) shows refused schedules."""
    return bool(want) and want[0].startswith("jobctl: ")


def check_example(report, place, shell, page, command, want):
    status, got = shell.run(command)
    got = [anonymous(line) for line in got]
    started = re.match(r"jobschedd --user(?: --instance (\w+))?.*&$", command, re.DOTALL)
    if started:
        place.wait_for_daemon(*(["--instance", started.group(1)] if started.group(1) else []))
    same = matches(want, got) if shell.terminal else want == got
    ok = (status != 0) == expects_failure(want) and (not want or same)
    report.point(ok, f"{page}: {' '.join(command.split())}", f"exit status {status}", "wanted:", *want, "got:", *got)
    return status != NO_END


def check_page(report, page, daemon, terminal, least):
    found = list(examples((MAN / page).read_text(encoding="utf-8")))
    report.point(len(found) >= least, f"{page} has examples", f"{len(found)} instead of at least {least}")
    place = Place()
    try:
        if daemon:
            place.start_daemon()
        shell = Shell(place.env, place.env["HOME"], terminal)
        for command, want in found:
            if not check_example(report, place, shell, page, command, want):
                break
        shell.close()
    finally:
        place.close()


def main():
    report = Report()
    only = sys.argv[1:]
    for page in PAGES:
        if not only or page[0] in only:
            check_page(report, *page)
    print(f"1..{report.number}")


main()
