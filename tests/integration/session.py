# SPDX-License-Identifier: Apache-2.0
# PAM sessions: their settings apply to the command, and each session is closed exactly once.
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fuse import Silent
from grouped import Grouped
from harness import Skip, case, main, wait_until
from system import System, children_of, write

BEGIN = "auth required pam_permit.so\naccount required pam_permit.so\n"
MARK = "session required pam_exec.so seteuid /bin/sh /etc/jobsched/mark\n"
MODULES = ("permit", "deny", "exec", "limits", "env")


def prepared(modules="", kind=System):
    """A system whose PAM sessions write each open and close to a file."""
    s = kind(spawner_conf="pam = session\n")
    try:
        probe = subprocess.run(s.spawner_command() + ["--can-read-state", "1"], env=s.env, capture_output=True, text=True, timeout=20)
        if "without PAM" in probe.stderr:
            raise Skip("built without PAM")
        found = subprocess.run(["find", "/lib", "/usr/lib", "-name", "pam_*.so"], capture_output=True, text=True, timeout=60).stdout
        if not all("pam_%s.so" % m in found for m in MODULES):
            raise Skip("needs the modules of PAM")
        write("/etc/jobsched/mark", 'test ! -e /etc/jobsched/slow || sleep 0.5\necho "$PAM_TYPE $PAM_USER" >>/etc/jobsched/marks\n'
              'test ! -e /etc/jobsched/hang || sleep 100\n')
        write("/etc/jobsched/marks", "")
        write("/etc/pam.d/jobsched", BEGIN + MARK + modules)
        s.start()
    except BaseException:
        s.close()
        raise
    return s


def marks():
    with open("/etc/jobsched/marks") as f:
        return f.read().splitlines()


ONCE = ["open_session alice", "close_session alice"]


def closed(times=1):
    wait_until("each session was closed", 30, lambda: sum(m.startswith("close") for m in marks()) >= times)
    time.sleep(0.1)
    assert sorted(marks()) == sorted(ONCE * times), marks()


def stat_of(pid):
    """The name and the following fields of /proc/PID/stat; an empty name if the process is gone."""
    try:
        with open("/proc/%s/stat" % pid) as f:
            head, tail = f.read().rsplit(")", 1)
    except (FileNotFoundError, ProcessLookupError):
        return "", [None]
    return head.split("(", 1)[1], tail.split()


def state_of(pid):
    return stat_of(pid)[1][0]


def keepers(s):
    """The processes that keep sessions open."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        name, rest = stat_of(pid)
        if name == "jobsched-pam" and rest[0] != "Z" and int(rest[1]) == s.spawner.pid:
            found.append(pid)
    return found


def running(s, **spec):
    """Adds a job of alice and waits for its first output."""
    job = s.add("alice", **spec)["id"]
    wait_until("the job has written output", 30, lambda: s.runs("alice", job) and s.jobctl("alice", "log", str(job), check=False).stdout)
    return job


@case
def settings_of_the_session_apply_to_the_command():
    conf = "session required pam_limits.so conf=/etc/jobsched/limits\n" \
           "session required pam_env.so envfile=/etc/jobsched/none conffile=/etc/jobsched/env\n"
    with prepared(conf) as s:
        write("/etc/jobsched/limits", "alice hard nofile 321\nalice soft nofile 123\nalice - nproc 777\n")
        write("/etc/jobsched/none", "")
        write("/etc/jobsched/env", "FROM_PAM DEFAULT=yes\nBOTH DEFAULT=pam\nLANG DEFAULT=pam\nJOBSCHED_RUN DEFAULT=0\nTZ DEFAULT=pam\n")
        said = s.run_job("alice", "sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -p; ulimit -c; env; id -un; ls /proc/self/fd",
                         env={"BOTH": "job"}, tz="Europe/Berlin").splitlines()
        assert said[:4] == ["123", "321", "777", "0"], said
        for line in ("FROM_PAM=yes", "BOTH=job", "LANG=pam", "TZ=Europe/Berlin", "USER=alice"):
            assert line in said, (line, said)
        assert "JOBSCHED_RUN=0" not in said and said[-5:] == ["alice", "0", "1", "2", "3"], said
        # limits of the job are applied on top and cannot be higher
        assert s.run_job("alice", "sh", "-c", "ulimit -n", limits={"nofile": "99"}) == "99\n"
        job = s.add("alice", command=["true"], limits={"nofile": "400"})["id"]
        run = s.wait_final("alice", job)
        assert "higher than the PAM session of its user allows" in s.attempts("alice", run["id"])[0]["error"], s.attempts("alice", run["id"])
        closed(3)


@case
def the_shipped_pam_service_opens_sessions():
    with prepared() as s:
        with open(os.path.join(os.environ["top_srcdir"], "packaging/pam/jobsched")) as f:
            write("/etc/pam.d/jobsched", f.read() + MARK)
        for user in ("alice", "bob"):
            said = s.run_job(user, "sh", "-c", "id -un; cat /proc/self/loginuid").split()
            assert said[0] == user and said[1:] in ([str(s.uid(user))], ["4294967295"]), said  # 4294967295: a kernel without audit
        assert [m for m in marks() if "alice" in m] == ONCE, marks()


def each_end(kind):
    with prepared(kind=kind) as s:
        ends = [("true", "succeeded"), ("exit 7", "failed"), ("kill -9 $$", "failed"), ("(setsid sleep 300 &); exit 0", "succeeded")]
        for number, (script, state) in enumerate(ends, 1):
            run = s.wait_final("alice", s.add("alice", script=script)["id"])
            assert run["state"] == state, (script, run, s.attempts("alice", run["id"]))
            assert sorted(marks()) == sorted(ONCE * number), (script, marks())  # closed before the end is reported
        attempt = s.attempts("alice", s.runs("alice", 3)[0]["id"])[0]
        assert attempt["signal"] == 9, attempt
        spec = {"script": "trap '' TERM; echo here; while :; do sleep 0.05; done", "timeout": 1, "grace": 1}
        run = s.wait_final("alice", s.add("alice", **spec)["id"])
        assert run["state"] == "timed_out", (run, s.attempts("alice", run["id"]))
        job = running(s, script="echo here; sleep 300")
        s.api("alice").post("/v1/runs/%d/cancel" % s.runs("alice", job)[0]["id"])
        assert s.wait_final("alice", job)["state"] == "cancelled"
        closed(6)
        wait_until("no process is left", 20, lambda: not keepers(s))
        assert "stranger" not in s.said() and "cannot be identified" not in s.said(), s.said()


@case
def a_session_is_closed_once_however_its_command_ends():
    each_end(System)


@case
def a_session_is_closed_once_however_its_command_ends_in_a_control_group():
    each_end(Grouped)


@case
def many_short_runs_lose_no_end_and_leak_nothing():
    with prepared() as s:
        s.run_job("alice", "true")
        wait_until("no process is left", 20, lambda: not children_of(s.spawner.pid))
        fds = len(os.listdir("/proc/%d/fd" % s.spawner.pid))
        jobs = [{"script": "(setsid sleep 300 &) ; exit %d" % (i % 2)} for i in range(60)]
        jobs += [{"command": ["false"]} for i in range(60)] + [{"command": ["/does/not/exist"]} for i in range(10)]
        s.api("alice").post("/v1/jobs/bulk", {"jobs": jobs})
        wait_until("all runs have ended", 90, lambda: s.api("root").get("/v1/status")["runs"]["failed"] == 100)
        assert "exit status of process" not in s.said() and "cannot be identified" not in s.said(), s.said()
        closed(131)
        wait_until("no process is left", 20, lambda: not children_of(s.spawner.pid))
        wait_until("the descriptors are closed", 20, lambda: len(os.listdir("/proc/%d/fd" % s.spawner.pid)) <= fds)


@case
def a_user_cannot_prevent_the_close_of_a_session():
    with prepared() as s:
        s.users["mallory"] = 1000000000 + os.getpid()  # a uid without other processes, because the job kills all processes of its user
        s.write_users()
        script = "echo $PPID; kill -9 $PPID; for p in $(pgrep -x jobsched-pam); do kill -9 $p; done; kill -9 -- -1; kill -9 $$"
        run = s.wait_final("mallory", s.add("mallory", script=script)["id"])
        assert s.attempts("mallory", run["id"])[0]["signal"] == 9, s.attempts("mallory", run["id"])
        said = s.output("mallory", run["id"])
        assert said.splitlines()[0] == str(s.spawner.pid) and "not permitted" in said, said
        assert marks() == [m.replace("alice", "mallory") for m in ONCE], marks()
        running(s, script="echo here; sleep 300")
        (keeper,) = keepers(s)
        assert os.stat("/proc/%d" % keeper).st_uid == 0
        with open("/proc/%d/status" % keeper) as f:
            assert "SigBlk:\t%016x" % sum(1 << n - 1 for n in (1, 2, 3, 10, 12, 15)) in f.read()
        assert len(os.listdir("/proc/%d/fd" % keeper)) == 5, os.listdir("/proc/%d/fd" % keeper)  # 0 to 2, socket, worker
        os.kill(keeper, signal.SIGTERM)
        time.sleep(0.2)
        assert keepers(s) == [keeper]


@case
def a_strict_sandbox_works_in_a_session():
    with prepared() as s:
        job = running(s, script="echo $$; trap 'exit 5' TERM; while :; do sleep 0.05; done", sandbox="strict", cwd="/")
        assert int(s.jobctl("alice", "log", str(job)).stdout) < 10 and marks() == ONCE[:1]
        s.api("alice").post("/v1/runs/%d/cancel" % s.runs("alice", job)[0]["id"])
        run = s.wait_final("alice", job)
        assert s.attempts("alice", run["id"])[0]["exit_code"] == 5, s.attempts("alice", run["id"])
        job = s.add("alice", command=["/does/not/exist"], sandbox="strict", cwd="/")["id"]
        run = s.wait_final("alice", job)
        assert "could not run '/does/not/exist'" in s.attempts("alice", run["id"])[0]["error"]
        closed(2)
        wait_until("no process is left", 20, lambda: not keepers(s))


@case
def sessions_survive_a_reload_and_close_when_the_spawner_stops():
    with prepared() as s:
        job = running(s, script="echo one; while ! test -e ~/go; do sleep 0.05; done; exit 7")
        s.spawner.send_signal(signal.SIGHUP)
        wait_until("the spawner was reloaded", 20, lambda: "resumed with 1 workers" in s.said())
        time.sleep(0.2)
        assert marks() == ONCE[:1] and len(keepers(s)) == 1, marks()
        write(s.home("alice") + "/go", "")
        assert s.wait_final("alice", job)["exit_code"] == 7
        closed(1)
        running(s, script="echo one; sleep 300")
        write("/etc/jobsched/slow", "")
        s.spawner.terminate()
        s.spawner.wait(30)
        assert sorted(marks()) == sorted(ONCE * 2), marks()  # before the spawner exits


@case
def a_session_is_closed_when_the_spawner_is_killed():
    with prepared() as s:
        job = running(s, script="echo $$; sleep 300")
        pid = int(s.jobctl("alice", "log", str(job)).stdout)
        s.spawner.kill()
        s.spawner.wait()
        closed(1)
        assert state_of(pid) in ("Z", None)


@case
def a_denied_session_denies_the_start_with_the_reason():
    with prepared("session required pam_deny.so\n") as s:
        def refused(words, times):
            run = s.wait_final("alice", s.add("alice", command=["touch", "ran"], retries=2)["id"])
            attempts = s.attempts("alice", run["id"])
            assert len(attempts) == times and attempts[0]["outcome"] == "denied" and words in attempts[0]["error"], attempts
        refused("PAM denies a session to 'alice'", 1)
        write("/etc/pam.d/jobsched", "auth required pam_deny.so\naccount required pam_permit.so\n" + MARK)
        before = marks()
        refused("PAM denies credentials to 'alice'", 1)
        assert marks() == before and not os.path.exists(s.home("alice") + "/ran")
        write("/etc/pam.d/jobsched", BEGIN + MARK)
        s.run_job("alice", "true")


@case
def a_start_with_a_hanging_session_can_be_cancelled_and_delays_no_other():
    with prepared() as s:
        write("/etc/jobsched/hang", "")
        job = s.add("alice", command=["touch", "ran"])["id"]
        wait_until("a module hangs", 20, lambda: marks() == ONCE[:1])
        (keeper,) = keepers(s)
        held = [os.readlink("/proc/%d/fd/%s" % (keeper, fd)) for fd in os.listdir("/proc/%d/fd" % keeper)]
        assert not any("spawner.lock" in h or "eventpoll" in h or "output" in h for h in held), held
        os.unlink("/etc/jobsched/hang")
        assert s.run_job("bob", "id", "-un") == "bob\n"
        began = time.monotonic()
        s.api("alice").post("/v1/runs/%d/cancel" % s.runs("alice", job)[0]["id"])
        assert s.wait_final("alice", job)["state"] == "cancelled" and time.monotonic() - began < 15
        write("/etc/jobsched/hang", "")
        job = s.add("alice", command=["touch", "ran"])["id"]
        wait_until("its process was killed", 40, lambda: "modules took more than 10 seconds" in s.said())
        os.unlink("/etc/jobsched/hang")
        assert not os.path.exists(s.home("alice") + "/ran")
        assert s.wait_final("alice", job, 60)["state"] == "succeeded"
        wait_until("the hanging process is gone", 20, lambda: not children_of(s.spawner.pid))


@case
def a_start_blocked_in_its_session_is_given_up_and_delays_no_other():
    with prepared() as s, Silent(s, "alice") as where:
        job = s.add("alice", command=["true"], cwd=where + "/x")["id"]
        wait_until("the session is open", 30, lambda: "open_session alice" in marks())
        assert s.run_job("bob", "echo", "well", cwd="/") == "well\n"
        wait_until("the start is given up", 90, lambda: "no process was ready within 22 seconds" in s.said())
        s.jobctl("alice", "cancel", str(job), "--running")


@case
def a_start_with_a_hanging_session_is_repeated_after_a_reload_and_a_daemon_restart():
    with prepared() as s:
        write("/etc/jobsched/hang", "")
        job = s.add("alice", script="echo >>ran")["id"]
        wait_until("a module hangs", 20, lambda: len(marks()) == 1)
        s.spawner.send_signal(signal.SIGHUP)
        wait_until("the start is repeated", 30, lambda: len(marks()) == 2)
        assert "the spawner is being upgraded" in s.said()
        s.engine.kill()
        s.engine.wait()
        os.unlink("/etc/jobsched/hang")
        s.start_engine()
        assert s.wait_final("alice", job, 60)["state"] == "succeeded"
        with open(s.home("alice") + "/ran") as f:
            assert f.read() == "\n"
        wait_until("each session was closed, or its process killed", 30, lambda: not keepers(s))
        assert marks().count(ONCE[1]) == 1, marks()


@case
def secrets_work_in_a_session_and_a_crashing_module_is_retried():
    with prepared() as s:
        write(s.home("alice") + "/secret", "hush", 0o600)
        os.chown(s.home("alice") + "/secret", s.uid("alice"), s.uid("alice"))
        said = s.run_job("alice", "sh", "-c", "wc -c <$JOBSCHED_SECRET_K; cat $JOBSCHED_SECRET_K", secrets={"K": "file:%s/secret" % s.home("alice")})
        assert said.startswith("4\n") and "hush" not in said, said
        write("/etc/jobsched/mark", "kill -9 $PPID\n")
        job = s.add("alice", command=["id", "-un"])["id"]
        wait_until("the start was tried", 20, lambda: "was not opened" in s.said())
        write("/etc/jobsched/mark", "exit 0\n")
        assert s.wait_final("alice", job, 60)["state"] == "succeeded"


if __name__ == "__main__":
    main()
