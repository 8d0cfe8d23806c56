# SPDX-License-Identifier: Apache-2.0
# The library of the integration tests: a daemon in a temporary directory, an API client, and TAP output.
import contextlib
import ctypes
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from datetime import datetime

from contract import CONTRACT

BUILD = os.environ.get("top_builddir", "build")
JOBSCHEDD = os.path.join(BUILD, "jobschedd")
JOBCTL = os.path.join(BUILD, "jobctl")
FINAL = {"succeeded", "failed", "timed_out", "cancelled", "lost", "skipped", "expired"}


class Skip(Exception):
    """The case cannot run on this machine. The reason is printed."""


def sanitized():
    """True if the programs were built with a sanitizer. Such programs are slower and cannot run under valgrind."""
    libraries = subprocess.run(["readelf", "-d", JOBSCHEDD], capture_output=True, text=True).stdout
    return "libasan" in libraries or "libtsan" in libraries


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root to mount a file system")


def need_program(name):
    if not shutil.which(name):
        raise Skip("needs " + name)


def instant(text):
    """Converts a time of the API to seconds since 1970."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


LEAST_TIMEOUT = 90  # seconds; on a busy machine a process can stand still for many seconds


def wait_until(what, seconds, condition, pause=0.02):
    """Returns the first true value of condition(). Fails with the text 'what' after the timeout, which is LEAST_TIMEOUT or more."""
    seconds = max(seconds, LEAST_TIMEOUT)
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("timeout after %g s: %s" % (seconds, what))
        time.sleep(pause)


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


@contextlib.contextmanager
def thread_stopped(pid, name):
    """Stops one thread of a daemon with ptrace, to simulate a disk that does not answer. The other threads continue."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    threads = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            threads.setdefault(f.read().strip(), int(tid))
    tid = threads[name]
    if libc.ptrace(PTRACE_SEIZE, tid, None, None) != 0 or libc.ptrace(PTRACE_INTERRUPT, tid, None, None) != 0:
        raise Skip("cannot stop a thread: " + os.strerror(ctypes.get_errno()))
    os.waitpid(tid, 0x40000000)  # __WALL
    try:
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, tid, None, None)


class Unreachable(Exception):
    """The daemon did not answer. The request may or may not have been carried out."""


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Api:
    """An API client with one connection, which is opened again after it was lost."""

    def __init__(self, path, timeout=60, contract=CONTRACT):
        self.connection = Connection(path, timeout)
        self.contract = contract

    def call(self, method, path, body=None):
        """Returns status and JSON. A GET is repeated once if the daemon had closed the idle connection."""
        if method == "GET" and self.connection.sock:
            try:
                return self.once(method, path, body)
            except Unreachable:
                pass
        return self.once(method, path, body)

    def once(self, method, path, body):
        try:
            data = None if body is None else json.dumps(body)
            try:
                self.connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
            except BrokenPipeError:
                pass  # the daemon refused the header and closed; the response can still be read
            answer = self.connection.getresponse()
            content = answer.read()
            status, content = answer.status, json.loads(content)
        except (OSError, http.client.HTTPException) as e:
            self.connection.close()
            raise Unreachable(str(e)) from e
        if self.contract:
            self.contract.answer(method, path, status, content)
        return status, content

    def patiently(self, method, path, body=None):
        """Repeats a request while the answer is 'busy', for at most 20 s. A 'busy' request had no effect."""
        end = time.monotonic() + 20
        while True:
            status, answer = self.call(method, path, body)
            if status != 503 or answer["error"]["code"] != "busy" or time.monotonic() > end:
                return status, answer
            time.sleep(0.2)

    def get(self, path):
        status, answer = self.patiently("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def post(self, path, body=None):
        status, answer = self.patiently("POST", path, body)
        assert status in (200, 201), (path, status, answer)
        return answer

    def pages(self, path, member):
        """Returns all entries of a list, from all its pages."""
        cursor, found = None, []
        glue = "&" if "?" in path else "?"
        while True:
            page = self.get(path + glue + "limit=1000" + ("&cursor=" + cursor if cursor else ""))
            found += page[member]
            cursor = page["next_cursor"]
            if not cursor:
                return found

    def close(self):
        self.connection.close()


class Daemon:
    """jobschedd --user with state, socket and log in a temporary directory, which close() removes."""

    def __init__(self, config="", state=None):
        self.dir = tempfile.mkdtemp(prefix="jobsched-it.")
        self.state_home = state or os.path.join(self.dir, "state")
        self.runtime = os.path.join(self.dir, "run")
        self.log = os.path.join(self.dir, "log")
        self.config = os.path.join(self.dir, "jobschedd.conf")
        os.makedirs(self.state_home, exist_ok=True)
        os.makedirs(self.runtime, mode=0o700)
        self.write_config(config)
        self.state = os.path.join(self.state_home, "jobsched")
        self.db_path = os.path.join(self.state, "jobs.db")
        self.socket = os.path.join(self.runtime, "jobsched", "jobsched.sock")
        self.env = dict(os.environ, XDG_STATE_HOME=self.state_home, XDG_RUNTIME_DIR=self.runtime, LC_ALL="C.UTF-8",
                        JOBSCHED_SOCKET=self.socket)
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "INVOCATION_ID", "JOURNAL_STREAM"):
            self.env.pop(name, None)
        self.process = None
        self.api_ = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        self.close(failed=kind is not None)

    def write_config(self, text):
        """Writes the configuration. 'max-running = auto', the default of the daemon, depends on the load of the machine."""
        if not re.search("^max-running *=", text, re.M):
            text = "max-running = 64\n" + text
        with open(self.config, "w") as f:
            f.write(text)

    def command(self):
        return [JOBSCHEDD, "--user", "--config", self.config]

    def start(self, wait=True, before=(), env=None):
        """Starts the daemon. With 'wait', returns when the daemon answers requests."""
        assert self.process is None or self.process.poll() is not None, "the daemon is already running"
        log = open(self.log, "ab")
        self.process = subprocess.Popen([*before, *self.command()], env=dict(self.env, **(env or {})),
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, seconds=60):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError("the daemon ended with %d:\n%s" % (self.process.returncode, self.said()))
            try:
                return self.api().call("GET", "/v1/status")[0] == 200
            except Unreachable:
                return False
        wait_until("the daemon answers requests", seconds, ready)

    def run(self, seconds=60, env=None):
        """Starts a daemon that is expected to exit. Returns its exit code and output."""
        result = subprocess.run(self.command(), env=dict(self.env, **(env or {})), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        return result.returncode, result.stdout

    def ended(self, seconds=30):
        return self.process.wait(seconds)

    def stop(self):
        """Sends SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def api(self):
        if not self.api_:
            self.api_ = Api(self.socket)
        return self.api_

    def jobctl(self, *words, check=True, **more):
        result = subprocess.run([JOBCTL, *words], env=self.env, capture_output=True, text=True, **more)
        if check:
            assert result.returncode == 0, (words, result.returncode, result.stderr)
        return result

    def add(self, **spec):
        return self.api().post("/v1/jobs", spec)

    def runs(self, job=None):
        return self.api().pages("/v1/runs" + ("?job=%s" % job if job else ""), "runs")

    def wait_final(self, job, seconds=30):
        """Waits until the newest run of a job has ended, and returns it."""
        def final():
            found = self.runs(job)
            return found and found[0]["state"] in FINAL and found[0]
        return wait_until("job %s has ended" % job, seconds, final)

    def wait_running(self, job, seconds=30):
        """Waits until a run of a job is running, and returns it."""
        return wait_until("job %s is running" % job, seconds, lambda: [r for r in self.runs(job) if r["state"] == "running"])[0]

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def database(self):
        """Opens the SQLite store read-only. Only valid while no daemon runs."""
        return sqlite3.connect("file:%s?mode=ro" % self.db_path, uri=True)

    def assert_intact(self):
        """Runs SQLite's integrity check. Only valid while no daemon runs."""
        with contextlib.closing(self.database()) as store:
            assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    def processes(self):
        """The running processes that name the directory of this daemon in their arguments or environment, by pid."""
        found = {}
        mark = self.dir.encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read()
                with open("/proc/%s/environ" % pid, "rb") as f:
                    environment = f.read()
                if int(pid) != os.getpid() and (mark in words or mark in environment) and words:
                    found[int(pid)] = words.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def spawner(self, program="jobsched-spawner"):
        """The pid of the spawner, or None."""
        for pid, words in self.processes().items():
            words = words.split(" ")
            if os.path.basename(words[0]) == program and "--launch" not in words:  # launchers are children of the spawner
                return pid
        return None

    def net(self):
        """The pid of jobsched-net, or None."""
        return self.spawner("jobsched-net")

    def close(self, failed=False):
        if self.api_:
            self.api_.close()
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        said = self.said() if os.path.exists(self.log) else ""
        with contextlib.suppress(OSError):
            with open(os.path.join(self.runtime, "jobsched", "net", "net.log"), errors="replace") as f:
                said += f.read()
        shutil.rmtree(self.dir, ignore_errors=True)
        if failed:
            sys.stdout.writelines("# daemon: %s\n" % line for line in said.splitlines()[-40:])
        for mark in ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:"):
            assert mark not in said, "sanitizer report:\n" + said[said.index(mark):][:4000]


CASES = []


def case(function):
    """Registers a test case. The name of the function states the expected behaviour."""
    CASES.append(function)
    return function


def own_pid_namespace():
    """True if this process runs in the PID namespace that enter_pid_namespace() made."""
    return os.environ.get("JOBSCHED_TEST_PID_NAMESPACE") == os.readlink("/proc/self/ns/pid")


def enter_pid_namespace():
    """Starts this program again in its own PID namespace, if that is permitted.

    Signals sent to every process of a user then reach the processes of this test only, and no process of the test
    outlives it. A shell is the first process of the namespace, because it reaps orphans.
    """
    make = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if own_pid_namespace() or os.geteuid() != 0 or not shutil.which("unshare") or \
            subprocess.run(make + ["true"], capture_output=True).returncode != 0:
        return
    script = 'export JOBSCHED_TEST_PID_NAMESPACE="$(readlink /proc/self/ns/pid)"; "$@"; exit "$?"'
    os.execvp(make[0], make + ["sh", "-c", script, "sh", sys.executable, *sys.argv])


def main():
    """Runs the cases of a file, or those named as arguments, and prints TAP."""
    enter_pid_namespace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs the clean-up code when a test is terminated
    chosen = [c for c in CASES if not sys.argv[1:] or c.__name__ in sys.argv[1:]]
    seed = int(os.environ.get("SEED", time.time()))
    random.seed(seed)
    print("1..%d" % len(chosen))
    print("# SEED=%d" % seed)
    failed = False
    for number, function in enumerate(chosen, 1):
        began = time.monotonic()
        try:
            note = function()
            print("ok %d - %s" % (number, function.__name__))
            print("# %.1f s%s" % (time.monotonic() - began, "; " + note if note else ""))
        except Skip as e:
            print("ok %d - %s # SKIP %s" % (number, function.__name__, e))
        except Exception:
            failed = True
            print("not ok %d - %s" % (number, function.__name__))
            sys.stdout.writelines("# %s\n" % line for line in traceback.format_exc().splitlines())
        sys.stdout.flush()
    sys.exit(failed)
