# SPDX-License-Identifier: Apache-2.0
# A user who blocks the start of a job does not delay jobs of other users.
import contextlib
import fcntl
import os
import pwd
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fuse import Silent
from harness import case, main, wait_until
from system import System, children_of, stop_all_of, stopped_processes, write


def leased(path, uid):
    """A process of that user with a write lease on the file: open() blocks until the kernel breaks the lease."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setresuid(uid, uid, uid)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fd = os.open(path, os.O_RDWR)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.write(told, b"x")
        time.sleep(120)
        os._exit(0)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    os.close(told)
    return pid


def blocked_program(profile):
    with System() as s:
        s.start()
        path = os.path.join(pwd.getpwnam("alice").pw_dir, "job")
        write(path, "#!/bin/sh\nexit 0\n", 0o755)
        os.chown(path, s.uid("alice"), s.uid("alice"))
        holder = leased(path, s.uid("alice"))
        try:
            mine = s.add("alice", command=[path], sandbox=profile)["id"]
            time.sleep(0.3)
            began = time.monotonic()
            other = s.add("bob", command=["true"])["id"]
            assert s.wait_final("bob", other)["state"] == "succeeded"
            took = time.monotonic() - began
            assert took < 20, took
        finally:
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
        assert s.wait_final("alice", mine)["state"] == "succeeded"
        return "the other's job took %.2f s" % took


@case
def a_program_blocked_by_its_owner_delays_no_other_user():
    return blocked_program("standard")


@case
def a_blocked_program_in_a_pid_namespace_delays_no_other_user():
    return blocked_program("strict")


@case
def a_user_who_stops_all_own_processes_delays_no_other_user():
    with System(engine_conf="max-running = 64\n") as s:  # stopped runs occupy slots
        s.start()
        alice, seen = s.uid("alice"), 0
        stopper = stop_all_of(alice)
        try:
            for profile in ("compat", "standard", "strict"):
                before = s.said().count("is blocked before its command")

                def blocked():
                    s.add("alice", command=["true"], sandbox=profile, retries=3)
                    return s.said().count("is blocked before its command") > before
                wait_until("a start is blocked", 60, blocked, 0.1)
                for _ in range(5):
                    assert s.run_job("bob", "echo", "well", cwd="/", sandbox=profile) == "well\n"
                    seen += len(stopped_processes(alice))
        finally:
            os.kill(stopper, signal.SIGKILL)
            os.waitpid(stopper, 0)
        assert seen > 0, "no process was stopped"
        assert s.spawner.poll() is None and s.run_job("alice", "echo", "well", cwd="/", sandbox="strict") == "well\n"
        return "%d stopped processes seen" % seen


class Manager:
    """The notification socket of systemd, for a spawner with a watchdog of 3 seconds."""

    def __init__(self, s):
        self.system = s

    def __enter__(self):
        path = os.path.join(self.system.dir, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.settimeout(60)
        self.system.env.update(NOTIFY_SOCKET=path, WATCHDOG_USEC="3000000")
        self.system.start_spawner()
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
            del self.system.env[name]
        return self

    def __exit__(self, *_):
        self.socket.close()

    def expect(self, word, times=1):
        """Waits for so many new messages with this line; earlier messages are ignored."""
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while word.startswith("WATCHDOG") and self.socket.recv(4096):
                pass
        self.socket.settimeout(60)
        while times:
            times -= word in self.socket.recv(4096).decode().splitlines()


def running(s, user, job):
    return [r for r in s.runs(user, job) if r["state"] == "running"]


@case
def a_blocked_directory_blocks_only_its_own_run():
    with System() as s, Manager(s) as manager:
        s.start_engine()
        manager.expect("READY=1")
        with Silent(s, "alice") as where:
            late = s.add("alice", command=["true"], cwd=where + "/late", timeout=1, grace=0.2)["id"]
            unwanted = s.add("alice", command=["true"], cwd=where + "/unwanted", grace=0.2)["id"]
            alone = s.add("alice", command=["true"], cwd=where + "/alone", sandbox="strict", timeout=1, grace=0.2)["id"]
            wait_until("both runs are running", 30, lambda: all(running(s, "alice", j) for j in (unwanted, alone)))
            assert s.run_job("bob", "echo", "well", cwd="/") == "well\n"
            assert s.run_job("alice", "echo", "well", cwd="/") == "well\n"
            manager.expect("WATCHDOG=1", 2)  # the event loop is not blocked
            times = s.said().count("resumed with")
            s.spawner.send_signal(signal.SIGHUP)  # a re-exec keeps the workers
            wait_until("the spawner has resumed", 30, lambda: s.said().count("resumed with") > times)
            manager.expect("WATCHDOG=1", 2)
            s.jobctl("alice", "cancel", str(unwanted), "--running")
            for job, state in ((late, "timed_out"), (alone, "timed_out"), (unwanted, "cancelled")):
                run = s.wait_final("alice", job, 60)
                assert run["state"] == state, run
                assert "could not be killed" in s.attempts("alice", run["id"])[0]["error"], s.attempts("alice", run["id"])
            assert s.run_job("bob", "echo", "well", cwd="/") == "well\n"
        # without the file system the processes exit and are reaped
        wait_until("no child is left", 30, lambda: not children_of(s.spawner.pid))


@case
def at_most_eight_starts_of_a_user_are_blocked_and_the_others_retried():
    with System(engine_conf="owner-max-running = 50\n") as s:
        s.start()
        with Silent(s, "alice") as where:
            jobs = [s.add("alice", command=["true"], cwd=where + "/%d" % i)["id"] for i in range(12)]
            wait_until("eight runs are running", 60, lambda: sum(bool(running(s, "alice", j)) for j in jobs) == 8)
            assert s.run_job("bob", "echo", "well", cwd="/") == "well\n"
        # now chdir() fails in each of them
        for job in jobs:
            assert s.wait_final("alice", job, 60)["state"] == "failed"


def listens(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        return probe.connect_ex(path) == 0


def state_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[0]


@case
def the_daemon_answers_while_it_connects_to_a_stopped_spawner():
    with System() as s:
        s.start()
        job = s.add("alice", command=["true"], schedule=["every 1h"])["id"]
        s.engine.send_signal(signal.SIGSTOP)  # it must not connect before the new spawner is stopped
        s.spawner.kill()
        s.spawner.wait()
        s.start_spawner()
        pid = s.spawner.pid
        wait_until("the new spawner listens", 30, lambda: listens(s.spawner_socket))
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until("it is stopped", 30, lambda: state_of(pid) == "T")
            s.engine.send_signal(signal.SIGCONT)
            # The pid is known only during the handshake, so each of these answers was given while the daemon connected.
            words = "the spawner (pid %d) is stopped" % pid
            wait_until("the status names the spawner", 60,
                       lambda: words in s.jobctl("root", "status", check=False).stdout)
            for _ in range(5):
                status = s.jobctl("root", "status", check=False)
                assert status.returncode == 1 and words in status.stdout, status
                said = s.jobctl("alice", "why", str(job)).stdout
                assert words in said, said
            assert "trying again" not in s.said(), s.said()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert s.run_job("alice", "echo", "well", cwd="/") == "well\n"


main()
