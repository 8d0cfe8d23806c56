#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Two daemons on one SQLite file: the second is refused in every environment and names the socket of the first.
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Api, Daemon, case, main, need_root, wait_until
from system import System, libc

MS_BIND = 4096
EXIT_OTHER_RUNS, EXIT_CONFIG = 69, 78
ENVIRONMENTS, SECOND = 3, 5  # first daemons, and attempts at a second one for each


class Home:
    """A home directory with several paths to it. A test that runs as root uses the account alice."""

    def __init__(self):
        self.root = os.geteuid() == 0
        self.programs = {name: os.path.abspath(os.path.join(BUILD, name)) for name in ("jobschedd", "jobctl")}
        self.uid = os.getuid()
        if self.root:
            self.system = System()
            self.programs = {"jobschedd": System.sbin + "/jobschedd", "jobctl": System.jobctl_path}
            self.uid = self.system.users["alice"]
        self.dir = tempfile.mkdtemp(prefix="jobsched-one.", dir="/home" if self.root else None)
        self.real = self.make("h")
        self.linked = os.path.join(self.dir, "l")
        os.symlink("h", self.linked)
        self.bound = self.make("b")
        self.state = os.path.join(self.real, ".local/state/jobsched")
        os.makedirs(self.state, mode=0o700)
        for part in (".local", ".local/state", ".local/state/jobsched"):
            os.chown(os.path.join(self.real, part), self.uid, -1)
        self.ways = [self.real, self.linked]
        if self.root and libc.mount(self.real.encode(), self.bound.encode(), None, MS_BIND, None) == 0:
            self.ways.append(self.bound)
        os.chmod(self.dir, 0o755)

    def make(self, name, uid=None):
        path = os.path.join(self.dir, name)
        os.makedirs(path, mode=0o700)
        os.chown(path, self.uid if uid is None else uid, -1)
        return path

    def random_place(self, number, first):
        """A random environment, options of jobschedd and a uid that all result in the same store."""
        env = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS") or k == "PATH"}
        env.update(HOME=random.choice(self.ways), LC_ALL="C.UTF-8")
        way = random.choice(self.ways)
        options, same_state = [], True
        uid = 0 if self.root and not first and random.random() < 0.3 else self.uid  # 0: sudo -E
        runtime = random.choice([None, "", "run", self.make("r%d" % number, uid)])
        if runtime is not None:
            env["XDG_RUNTIME_DIR"] = runtime
        kind = random.choice(["home", "xdg", "option", "store"])
        if kind == "xdg":
            env["XDG_STATE_HOME"] = way + "/.local/state"
        elif kind == "option":
            options = ["--state-dir", way + "/.local/state/jobsched"]
        elif kind == "store":
            env["XDG_STATE_HOME"] = self.make("s%d" % number, uid)
            options = ["--store", way + "/.local/state/jobsched/jobs.db"]
            same_state = False
        if random.random() < 0.3:
            options += ["--runtime-dir", self.make("d%d" % number, uid)]
        return env, options, uid, same_state

    def start(self, env, options, uid, **more):
        words = [self.programs["jobschedd"], "--user", *options]
        switch = {"user": uid, "group": uid, "extra_groups": []} if self.root else {}
        return subprocess.Popen(words, env=env, cwd="/", stdin=subprocess.DEVNULL, **switch, **more)

    def jobctl(self, env, uid, *words):
        switch = {"user": uid, "group": uid, "extra_groups": []} if self.root else {}
        return subprocess.run([self.programs["jobctl"], *words], env=env, cwd="/", capture_output=True, text=True, timeout=60, **switch)

    def clean(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    if self.dir.encode() in f.read():
                        os.kill(int(pid), signal.SIGKILL)
        if self.bound in self.ways:
            libc.umount2(self.bound.encode(), 2)
        subprocess.run(["rm", "-rf", self.dir], check=True)


def socket_of(home, log):
    """The socket path in the 'ready' line of a daemon's log, or None."""
    with open(log, errors="replace") as f:
        for line in f:
            if "ready: " in line:
                return line.split("ready: ")[1].split(",")[0]
    return None


def refused(home, first, socket, place):
    env, options, uid, same_state = place
    second = home.start(env, options, uid, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = second.communicate(timeout=90)[0]
    except subprocess.TimeoutExpired:
        second.kill()
        raise AssertionError("a second daemon started: %s %s as %d" % (env, options, uid)) from None
    story = (env, options, uid, second.returncode, said)
    assert second.returncode == (EXIT_OTHER_RUNS if uid == home.uid else EXIT_CONFIG), story
    assert "jobctl --socket" in said, story
    named = said.split("jobctl --socket ")[1].split("'")[0]
    assert os.path.realpath(named) == os.path.realpath(socket), story
    assert "AddressSanitizer" not in said and "runtime error" not in said, story
    assert first.poll() is None, "the first daemon ended"
    status = home.jobctl(env, uid, "--user", "status")
    if same_state:
        assert status.returncode == 0 and "jobsched.sock" in status.stdout, (env, uid, status)
    else:
        assert status.returncode == 5, (env, uid, status)
    assert home.jobctl(env, uid, "--socket", named, "status").returncode == 0, named


@case
def a_second_daemon_is_refused_and_names_the_first_in_random_environments():
    tried = 0
    for number in range(ENVIRONMENTS):
        home = Home()
        place = home.random_place(number * 100, True)
        log = os.path.join(home.dir, "log")
        with open(log, "w") as out:
            first = home.start(*place[:3], stdout=out, stderr=out)
        try:
            socket = wait_until("the first daemon is ready: %s" % (place,), 60, lambda: socket_of(home, log))
            api = Api(socket)
            job = api.post("/v1/jobs", {"command": ["sleep", "600"]})["id"]
            wait_until("its job runs", 60, lambda: [r["state"] for r in api.get("/v1/runs?job=%d" % job)["runs"]] == ["running"])
            for n in range(SECOND):
                refused(home, first, socket, home.random_place(number * 100 + n + 1, False))
                tried += 1
            runs = api.get("/v1/runs?job=%d" % job)["runs"]
            assert [(r["state"], r["attempt"]) for r in runs] == [("running", 1)], runs
            api.close()
        except BaseException:
            with open(log, errors="replace") as f:
                sys.stdout.writelines("# first: %s" % line for line in f)
            raise
        finally:
            first.terminate()
            first.wait(60)
            home.clean()
    return "%d attempts" % tried


def another(d, **env):
    """Runs a second daemon for the same state directory; returns exit code and output. None in env removes a variable."""
    merged = {k: v for k, v in dict(d.env, **env).items() if v is not None}
    result = subprocess.run(d.command(), env=merged, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, timeout=90)
    return result.returncode, result.stdout


@case
def a_run_is_not_started_again_by_a_daemon_with_another_runtime_directory():
    with Daemon() as d:
        d.start()
        job = d.add(command=["sleep", "600"])["id"]
        run = d.wait_running(job)
        code, said = another(d, XDG_RUNTIME_DIR=None, JOBSCHED_SOCKET=None)
        assert code == EXIT_OTHER_RUNS and d.socket in said, (code, said)
        again = d.runs(job)
        assert [(r["id"], r["state"], r["attempt"]) for r in again] == [(run["id"], "running", 1)], again
        env = {k: v for k, v in d.env.items() if k not in ("XDG_RUNTIME_DIR", "JOBSCHED_SOCKET")}
        seen = subprocess.run([os.path.join(BUILD, "jobctl"), "--user", "list"], env=env, capture_output=True, text=True)
        assert seen.returncode == 0 and "sleep" in seen.stdout, seen


@case
def instances_share_a_store_and_a_second_daemon_of_an_instance_is_refused():
    with Daemon("lease = 4\n") as d, Daemon("lease = 4\n", state=d.state_home) as b:
        d.start()
        b.command = lambda: [*Daemon.command(b), "--instance", "b"]
        b.socket = os.path.join(b.runtime, "jobsched-b", "jobsched.sock")
        b.start()
        code, said = another(b, XDG_RUNTIME_DIR=d.dir)
        assert code == EXIT_OTHER_RUNS and b.socket in said, (code, said)
        assert len(d.api().get("/v1/nodes")["nodes"]) == 2
        b.stop()


@case
def a_killed_daemon_can_be_restarted_at_once_and_its_runs_continue():
    with Daemon() as d:
        d.start()
        job = d.add(command=["sleep", "600"])["id"]
        run = d.wait_running(job)
        for _ in range(3):
            d.kill()
            d.start()
        assert [(r["id"], r["state"], r["attempt"]) for r in d.runs(job)] == [(run["id"], "running", 1)]


@case
def a_second_daemon_on_a_hard_link_of_the_store_is_refused():
    with Daemon() as d, Daemon() as other:
        d.start()
        os.makedirs(other.state, mode=0o700)
        os.link(d.db_path, other.db_path)
        code, said = another(other)
        assert code == EXIT_OTHER_RUNS and d.socket in said, (code, said)
        d.stop()
        code, said = another(other)
        assert code == EXIT_CONFIG and "hard links" in said, (code, said)
        os.unlink(other.db_path)
        d.start()


@case
def a_store_that_is_mounted_as_a_single_file_is_refused():
    need_root()
    with Daemon() as d, Daemon() as other:
        d.start()
        Home().clean()  # System() enters a private mount namespace
        os.makedirs(other.state, mode=0o700)
        open(other.db_path, "w").close()
        assert libc.mount(d.db_path.encode(), other.db_path.encode(), None, MS_BIND, None) == 0
        try:
            code, said = another(other)
            assert code == EXIT_OTHER_RUNS and d.socket in said, (code, said)
            d.kill()
            code, said = another(other)
            assert code == EXIT_CONFIG and "single file" in said, (code, said)
        finally:
            libc.umount2(other.db_path.encode(), 2)


@case
def a_store_that_was_moved_under_a_running_daemon_is_not_opened_by_another():
    with Daemon() as d, Daemon() as other:
        d.start()
        os.makedirs(other.state, mode=0o700)
        os.rename(d.db_path, other.db_path)
        code, said = another(other)
        assert code == EXIT_OTHER_RUNS and d.socket in said, (code, said)
        os.rename(other.db_path, d.db_path)
        d.stop()


@case
def a_link_to_a_missing_store_is_refused():
    with Daemon() as d:
        os.makedirs(d.state, mode=0o700)
        os.symlink(os.path.join(d.dir, "missing", "jobs.db"), d.db_path)
        code, said = d.run()
        assert code == EXIT_CONFIG and d.db_path in said, (code, said)
        assert os.path.islink(d.db_path)


if __name__ == "__main__":
    main()
