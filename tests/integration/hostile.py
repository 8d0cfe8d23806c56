# SPDX-License-Identifier: Apache-2.0
# Hostile jobs: daemons, ignored signals, fork bombs, signals to all processes. Each ends in the right state, with all of its
# processes.
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from grouped import Grouped, runs
from harness import Skip, case, main, own_pid_namespace, wait_until

# A process without its session, parent and environment: only the control group identifies its run.
DAEMON = "setsid env -i HOME=$HOME sh -c 'setsid sh -c \"echo \\$\\$ >\\$HOME/%s; exec sleep 300\" &' & " \
         "until [ -s $HOME/%s ]; do sleep 0.02; done; "


def daemon(name):
    return DAEMON % (name, name)


@case
def a_background_process_ends_with_its_run():
    with Grouped() as s:
        s.start()
        job = s.add("alice", script=daemon("pid") + "exit 4", sandbox="compat")["id"]
        run = s.wait_final("alice", job)
        assert (run["state"], run["exit_code"]) == ("failed", 4), run
        assert not runs(s.file("alice", "pid"))
        assert s.attempts("alice", run["id"])[0]["error"] is None


@case
def jobs_that_ignore_sigterm_or_stop_themselves_time_out_with_all_descendants():
    with Grouped() as s:
        s.start()
        deaf = s.add("alice", script="trap '' TERM; " + daemon("deaf") + "while :; do sleep 0.1; done", sandbox="compat",
                     timeout=1, grace=0.3)["id"]
        still = s.add("bob", script=daemon("still") + "kill -STOP $$", sandbox="compat", timeout=1, grace=0.3)["id"]
        for user, job, name, signals in (("alice", deaf, "deaf", [signal.SIGKILL]),
                                         ("bob", still, "still", [signal.SIGTERM, signal.SIGKILL])):
            run = s.wait_final(user, job)
            assert run["state"] == "timed_out", run
            attempt = s.attempts(user, run["id"])[0]
            assert attempt["signal"] in [n.name for n in signals] + [int(n) for n in signals], attempt
            assert not runs(s.file(user, name))


@case
def a_job_that_signals_all_processes_harms_no_other_user():
    if not own_pid_namespace():
        raise Skip("needs a PID namespace, because the job signals every process of its user")
    with Grouped() as s:
        s.start()
        calm = s.add("bob", script="echo $$ >$HOME/calm; until [ -e $HOME/go ]; do sleep 0.05; done; exit 9")["id"]
        pid = s.file("bob", "calm")
        hostile = s.add("alice", script="kill -9 $PPID && echo parent; kill -9 %s && echo stranger; kill -9 -1; kill -9 0; exit 3" % pid,
                        sandbox="compat")["id"]
        run = s.wait_final("alice", hostile)
        assert run["state"] == "failed", run
        assert "parent" not in s.output("alice", run["id"]) and "stranger" not in s.output("alice", run["id"])
        assert s.spawner.poll() is None and s.engine.poll() is None and runs(pid)
        with open(os.path.join(s.home("bob"), "go"), "w"):
            pass
        assert s.wait_final("bob", calm)["exit_code"] == 9


@case
def the_end_of_a_run_does_not_wait_for_its_output_to_close():
    with Grouped() as s:
        s.start()
        closed = s.add("alice", script="exec >&- 2>&-; exit 5")["id"]
        kept = s.add("alice", script="echo first; setsid sh -c 'while :; do echo more; sleep 0.05; done' & exit 6")["id"]
        assert s.wait_final("alice", closed)["exit_code"] == 5
        assert s.wait_final("alice", kept)["exit_code"] == 6


@case
def descendants_of_a_killed_worker_end_before_its_next_attempt():
    with Grouped() as s:
        s.start()
        script = "n=$JOBSCHED_ATTEMPT; [ $n = 1 ] || { grep -qs \"^State:.[^ZX]\" /proc/$(cat $HOME/left)/status && exit 66; exit 0; }; " + \
            daemon("left") + "echo $$ >$HOME/main; sleep 300"
        job = s.add("alice", script=script, sandbox="compat", retries=1, backoff="fixed:1s")["id"]
        os.kill(int(s.file("alice", "main")), signal.SIGKILL)
        run = wait_until("the run has a second attempt", 60, lambda: [r for r in s.runs("alice", job) if r["state"] in ("succeeded", "failed")])[0]
        first, second = s.attempts("alice", run["id"])
        assert (first["outcome"], second["outcome"]) == ("failed", "succeeded"), (first, second)
        assert not runs(s.file("alice", "left"))


@case
def processes_of_a_killed_spawner_end_before_its_runs_are_started_again():
    with Grouped() as s:
        s.start()
        script = "[ $JOBSCHED_ATTEMPT = 1 ] || { grep -qs \"^State:.[^ZX]\" /proc/$(cat $HOME/orphan)/status && exit 66; exit 0; }; " + \
            daemon("orphan") + "echo $$ >$HOME/lead; sleep 300"
        job = s.add("alice", script=script, sandbox="compat")["id"]
        s.file("alice", "lead")
        s.spawner.kill()
        s.spawner.wait()
        assert runs(s.file("alice", "orphan"))
        s.start_spawner()
        assert not runs(s.file("alice", "orphan"))
        run = wait_until("the run has a second attempt", 60, lambda: [r for r in s.runs("alice", job) if r["state"] in ("succeeded", "failed")])[0]
        assert [a["outcome"] for a in s.attempts("alice", run["id"])] == ["lost", "succeeded"], s.attempts("alice", run["id"])


@case
def a_fork_bomb_within_its_limit_ends_with_its_run():
    with Grouped() as s:
        s.start()
        job = s.add("alice", script="f() { f | f & }; f; sleep 300", limits={"nproc": "60"}, timeout=2, grace=0.3)["id"]
        beside = s.add("bob", script="exit 0")["id"]
        assert s.wait_final("bob", beside)["state"] == "succeeded"
        assert s.wait_final("alice", job, 60)["state"] == "timed_out"
        mine = "%d" % s.uid("alice")
        wait_until("none of its processes is left", 30, lambda: not [
            p for p in os.listdir("/proc") if p.isdigit() and runs(p) and owner(p) == mine])


def owner(pid):
    try:
        return str(os.stat("/proc/" + pid).st_uid)
    except FileNotFoundError:
        return ""


@case
def a_job_cannot_leave_its_control_group():
    with Grouped() as s:
        s.start()
        out = s.run_job("alice", "sh", "-c", "for f in $(find %s -name cgroup.procs -o -name cgroup.kill -o -name pids.max); do "
                        "echo $$ >$f && echo wrote $f; done; cat /proc/self/cgroup; "
                        "cat %s/*/uid-$(id -u)/*/cgroup.events" % (s.place, s.place), sandbox="compat")
        assert "wrote" not in out, out
        assert "/uid-%d/" % s.uid("alice") in out, out
        assert "populated 1" in out, "the owner may read the files of his own group: " + out


@case
def limits_that_cannot_be_enforced_are_refused_or_reported():
    with Grouped() as s:
        s.start()
        if "pids" in open(s.place + "/cgroup.controllers").read():
            return "the limits can be enforced here"
        code, answer = s.api("alice").call("POST", "/v1/jobs", {"command": ["true"], "pids": 5})
        assert (code, answer["error"]["field"]) == (422, "pids") or (code, answer["error"]["field"]) == (400, "pids"), (code, answer)
        got = s.jobctl("alice", "add", "--cpu", "50%", "--", "true", check=False)
        assert got.returncode == 2 and "limit-missing" in got.stderr, got
    with Grouped(spawner_conf="limit-missing = report\n") as s:
        s.start()
        job = s.add("alice", command=["true"], cpu="50%")["id"]
        run = s.wait_final("alice", job)
        assert run["state"] == "succeeded"
        assert "processor time was not limited" in s.attempts("alice", run["id"])[0]["error"]
    with Grouped(spawner_conf="owner-pids = 100\n") as s:
        s.spawner = s.popen(s.spawner_command())
        assert s.spawner.wait(30) != 0
        assert "Delegate=yes" in s.said()


@case
def reloads_of_the_spawner_lose_no_run():
    with Grouped() as s:
        s.start()
        jobs = [s.add("alice" if i % 2 else "bob", script="echo begin; sleep 0.%d; echo end; exit %d" % (i % 10, i))["id"] for i in range(20)]
        for i in range(6):
            times = s.said().count("resumed with")
            s.spawner.send_signal(signal.SIGHUP)
            jobs.append(s.add("alice", script="echo begin; echo end; exit %d" % (20 + i))["id"])
            wait_until("the new program has resumed", 30, lambda: s.said().count("resumed with") > times)
        for i, job in enumerate(jobs):
            user = "bob" if i < 20 and i % 2 == 0 else "alice"
            run = s.wait_final(user, job, 60)
            assert (run["state"], run["exit_code"]) == ("failed" if i else "succeeded", i), run
            assert len(s.attempts(user, run["id"])) == 1, s.attempts(user, run["id"])
            assert s.output(user, run["id"]) == "begin\nend\n"
        assert s.spawner.poll() is None and s.said().count("jobsched-spawner: serving daemon") == 1


main()
