# SPDX-License-Identifier: Apache-2.0
# The daemon as a service: sockets, signals, readiness, configuration.
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Api, Daemon, Skip, Unreachable, case, main, need_program, need_root, wait_until


@case
def a_second_daemon_on_the_same_directory_exits_69():
    with Daemon() as d:
        d.start()
        code, said = d.run()
        assert code == 69, (code, said)
        d.api().get("/v1/status")


@case
def a_socket_left_by_a_killed_daemon_is_replaced():
    with Daemon() as d:
        d.start()
        d.kill()
        assert os.path.exists(d.socket)
        d.api().close()
        d.start()
        d.api().get("/v1/status")


@case
def a_removed_or_replaced_socket_is_created_again():
    with Daemon() as d:
        d.start()

        def answers():
            try:
                return Api(d.socket).call("GET", "/v1/status")[0] == 200
            except Unreachable:
                return False
        os.unlink(d.socket)
        wait_until("the daemon answers after the removal", 20, answers)
        with socket.socket(socket.AF_UNIX) as foreign:
            foreign.bind(os.path.join(d.dir, "foreign"))
            os.rename(foreign.getsockname(), d.socket)
            wait_until("the daemon answers after the replacement", 20, answers)


@case
def sigterm_ends_the_daemon_but_not_its_jobs():
    with Daemon() as d:
        d.start()
        done = os.path.join(d.dir, "done")
        go = os.path.join(d.dir, "go")
        job = d.add(command=["sh", "-c", 'until [ -e "$2" ]; do sleep 0.1; done; echo yes >"$1"', "sh", done, go])["id"]
        d.wait_running(job)
        assert d.stop() == 0, "the daemon must not wait for its jobs"
        open(go, "w").close()
        assert not os.path.exists(d.socket), "the socket must be removed"
        d.start()
        run = d.wait_final(job)
        assert run["state"] == "succeeded" and run["attempt"] == 1, run
        assert os.path.exists(done)


@case
def sighup_applies_a_changed_configuration_and_refuses_an_invalid_one():
    with Daemon("max-running = 1\n") as d:
        d.start()
        jobs = [d.add(command=["sleep", "600"])["id"] for _ in range(3)]

        def running():
            return len([r for r in d.runs() if r["state"] == "running"])
        wait_until("one run is running", 20, lambda: running() == 1)
        time.sleep(0.3)
        assert running() == 1
        d.write_config("max-running = nonsense\n")
        d.process.send_signal(signal.SIGHUP)
        wait_until("the invalid value is logged", 10, lambda: "nonsense" in d.said())
        assert running() == 1
        d.write_config("max-running = 3\n")
        d.process.send_signal(signal.SIGHUP)
        wait_until("three runs are running", 20, lambda: running() == 3)
        for job in jobs:
            d.api().post("/v1/jobs/%d/cancel" % job, {"running": True})


@case
def an_invalid_configuration_is_refused_at_start_with_its_line_number():
    with Daemon("max-running = 3\nnonsense = 1\n") as d:
        code, said = d.run()
        assert code == 78, (code, said)
        assert "jobschedd.conf:2" in said and "nonsense" in said, said


@case
def readiness_reload_stop_and_watchdog_are_sent_to_systemd():
    with Daemon() as d:
        path = os.path.join(d.dir, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(path)
            listener.settimeout(30)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            d.start(wait=False, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})

            def heard(word):
                while True:
                    data, ((_, _, who),), _, _ = listener.recvmsg(4096, 1000)
                    assert struct.unpack("3i", who)[0] == d.process.pid, "a message from another process than the daemon: %s" % data
                    lines = data.decode().splitlines()
                    if any(line.startswith(word) for line in lines):
                        return
            heard("READY=1")
            d.api().get("/v1/status")
            heard("WATCHDOG=1")
            heard("WATCHDOG=1")
            d.process.send_signal(signal.SIGHUP)
            heard("RELOADING=1")
            heard("READY=1")
            d.process.send_signal(signal.SIGTERM)
            heard("STOPPING=1")
        assert d.ended() == 0


@case
def the_daemon_serves_on_an_inherited_socket():
    need_program("systemd-socket-activate")
    with Daemon() as d:
        given = os.path.join(d.dir, "given.sock")
        names = [w for n in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME", "ASAN_OPTIONS", "TSAN_OPTIONS") if n in d.env
                 for w in ("-E", "%s=%s" % (n, d.env[n]))]
        log = open(d.log, "ab")
        d.process = subprocess.Popen(["systemd-socket-activate", "-l", given, *names, *d.command()], env=d.env,
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        wait_until("the socket exists", 20, lambda: os.path.exists(given))
        api = Api(given)
        assert api.call("POST", "/v1/jobs", {"command": ["true"]})[0] == 201
        api.close()
        assert not os.path.exists(d.socket), "the daemon must not create a socket of its own"
        assert d.stop() == 0
        assert os.path.exists(given), "the daemon must not remove an inherited socket"


@case
def jobs_inherit_no_descriptor_of_the_daemon():
    with Daemon() as d:
        d.start()
        job = d.add(command=["sh", "-c", "ls -l /proc/$$/fd"])["id"]
        d.wait_final(job)
        out = d.jobctl("log", str(job)).stdout
        extra = [line for line in out.splitlines() if re.search(r" ([3-9]|\d\d+) -> ", line)]
        # ls has the directory open that it lists
        assert not [line for line in extra if "socket" in line or "jobs.db" in line or d.dir in line], out


@case
def the_store_is_opened_once_per_connection():
    with Daemon() as d:
        d.start()
        d.wait_final(d.add(command=["true"])["id"])
        for _ in range(20):
            d.api().get("/v1/jobs")
        files = [os.readlink("/proc/%d/fd/%s" % (d.process.pid, fd)) for fd in os.listdir("/proc/%d/fd" % d.process.pid)
                 if os.path.exists("/proc/%d/fd/%s" % (d.process.pid, fd))]
        counts = {end: files.count(d.db_path + end) for end in ("", "-wal", "-shm")}
        counts[""] -= 1  # the lock file descriptor
        assert counts[""] == counts["-wal"] and 1 <= counts[""] <= 2 and counts["-shm"] <= counts[""], counts


@case
def the_journal_gets_fields_and_a_terminal_gets_lines():
    need_root()
    need_program("unshare")
    with Daemon() as d, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(os.path.join(d.dir, "journal"))
        journal.settimeout(20)
        open(d.log, "ab").close()
        place = os.stat(d.log)
        d.start(before=["unshare", "-m", "sh", "-c", "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && "
                        'ln -s "$0" /run/systemd/journal/socket && exec "$@"', journal.getsockname()],
                env={"JOURNAL_STREAM": "%d:%d" % (place.st_dev, place.st_ino)})
        assert "ready" not in d.said(), d.said()
        job = d.add(command=["sleep", "60"])
        d.wait_running(job["id"])
        os.kill(d.spawner(), signal.SIGKILL)
        while True:
            entry = dict(line.split("=", 1) for line in journal.recv(65536).decode().splitlines() if "=" in line)
            if "lost" in entry["MESSAGE"]:
                break
        assert entry["JOB"] == str(job["id"]) and entry["RUN"] and entry["NODE"] == os.uname().nodename, entry
        assert entry["PRIORITY"] == "4", entry
    with Daemon() as d:
        d.start()
        assert "jobschedd: ready: " in d.said(), d.said()


@case
def a_used_up_inotify_limit_is_named_with_the_setting():
    """A user namespace has its own limit, so that no other program of the machine is affected."""
    need_program("unshare")
    limited = ["unshare", "--user", "--map-root-user", "sh", "-c", "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$@\"", "sh"]
    if subprocess.run([*limited, "true"], capture_output=True).returncode != 0:
        raise Skip("cannot make a user namespace with a limit of its own")
    with Daemon() as d:
        plain = d.command()
        d.command = lambda: limited + plain
        code, said = d.run()
        assert code == 1 and "fs.inotify.max_user_instances" in said, (code, said)


main()
