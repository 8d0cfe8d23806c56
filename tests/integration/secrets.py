# SPDX-License-Identifier: Apache-2.0
# Secrets: read as their owner, passed to the command only, masked in its output.
import base64
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from grouped import Grouped
from harness import Daemon, case, main, wait_until
from system import System, stop_all_of, stopped_processes

VALUE = "correct-horse-battery"


def put(path, text, mode=0o600, uid=None):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    if uid is not None:
        os.chown(path, uid, uid)
    return "file:" + path


def output(d, run):
    connection = d.api().connection
    connection.request("GET", "/v1/runs/%d/output" % run)
    return connection.getresponse().read().decode()


def files_with_value(d):
    """Files below the directory of the daemon, including the log, that contain the value."""
    found = subprocess.run(["grep", "-rlF", VALUE, d.dir], capture_output=True, text=True).stdout.split()
    return [f for f in found if not f.endswith("/secret")]


@case
def only_the_command_gets_the_secret():
    with Daemon() as d:
        d.start()
        secret = put(os.path.join(d.dir, "secret"), VALUE + "\n")
        # its length shows that it can be read; arguments and variables do not contain it
        job = d.add(name="secretive", secrets={"API_KEY": secret, "second": secret}, script=(
            'wc -c <"$JOBSCHED_SECRET_API_KEY"; cat "$JOBSCHED_SECRET_API_KEY"; cat "$JOBSCHED_SECRET_second" >/dev/null; '
            'cat "$JOBSCHED_SECRET_API_KEY" "$JOBSCHED_SECRET_API_KEY"; base64 "$JOBSCHED_SECRET_API_KEY"; '
            'env | grep -c "$(cat "$JOBSCHED_SECRET_API_KEY")"; sleep 0.3; ls /proc/self/fd | wc -l; '
            'echo x >"$JOBSCHED_SECRET_API_KEY"'))["id"]
        run = d.wait_final(job)
        lines = output(d, run["id"]).splitlines()
        assert lines[0] == str(len(VALUE) + 1), lines
        assert lines[1:4] == ["***", "***", "***"], lines
        assert lines[4].startswith("***") and base64.b64encode(VALUE.encode()).decode()[:8] not in lines[4], lines
        assert lines[5:7] == ["0", "6"], lines  # ls has descriptors 0, 1, 2, two secrets and the directory that it reads
        assert run["exit_code"] != 0 and "cannot create" in lines[7], lines
        shown = d.jobctl("show", "secretive", "--reveal").stdout + d.jobctl("show", "secretive", "--json", "--reveal").stdout
        assert secret in shown and VALUE not in shown, shown
        assert "\nJOBSCHED_SECRET_API_KEY=/dev/fd/3\n" in d.jobctl("show", "secretive", "--env").stdout
        assert VALUE not in d.jobctl("events").stdout and not files_with_value(d), files_with_value(d)


@case
def an_attempt_with_an_unreadable_secret_is_not_started():
    with Daemon() as d:
        d.start()
        os.mkfifo(os.path.join(d.dir, "fifo"))
        large = put(os.path.join(d.dir, "large"), "x" * 65537)
        half = put(os.path.join(d.dir, "half"), "x" * 40000)
        for secrets, why in (({"A": "file:%s/nowhere" % d.dir}, "'A' could not be read from"),
                             ({"A": "file:%s/fifo" % d.dir}, "'A' is not a regular file"),
                             ({"A": "file:/"}, "'A' is not a regular file"),
                             ({"A": "file:/dev/zero"}, "'A' is not a regular file"),
                             ({"A": large}, "'A' is too large"),
                             ({"A": half, "B": half}, "'B' is too large")):
            job = d.add(command=["true"], secrets=secrets)["id"]
            run = d.wait_final(job)
            attempt = d.api().get("/v1/runs/%d" % run["id"])["attempts"][0]
            assert run["state"] == "failed" and attempt["outcome"] == "not_started" and why in attempt["error"], attempt
        assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"
        status, answer = d.api().call("POST", "/v1/jobs", {"command": ["true"], "secrets": {"A": "hunter2"}})
        assert status == 400 and answer["error"]["field"] == "secrets", answer
        left = [words for words in d.processes().values() if "--read-secrets" in words]
        assert not left, left


@case
def a_changed_file_applies_to_the_next_attempt():
    with Daemon() as d:
        d.start()
        path = os.path.join(d.dir, "secret")
        secret = put(path, "first-value")
        job = d.add(secrets={"A": secret}, retries=1, backoff="fixed:1s",
                    script='wc -c <"$JOBSCHED_SECRET_A"; [ "$JOBSCHED_ATTEMPT" = 2 ]')["id"]
        wait_until("it failed once", 30, lambda: d.runs(job) and d.runs(job)[0]["failures"] == 1)
        put(path, "the second value")
        run = d.wait_final(job)
        assert run["state"] == "succeeded" and output(d, run["id"]) == "16\n", output(d, run["id"])


@case
def values_stay_masked_across_a_re_exec_of_the_spawner():
    with Daemon() as d:
        d.start()
        go = os.path.join(d.dir, "go")
        secret = put(os.path.join(d.dir, "secret"), VALUE)
        # half of the secret is written before the re-exec, the other half after it
        job = d.add(secrets={"A": secret}, script=(
            's=$(cat "$JOBSCHED_SECRET_A"); echo "$s"; printf %%s "${s%%-battery}"; '
            'while [ ! -e "%s" ]; do sleep 0.05; done; echo "-battery"; echo "again $s"' % go))["id"]
        d.wait_running(job)
        pid = d.spawner()
        os.kill(pid, signal.SIGHUP)
        wait_until("the spawner has called exec()", 30, lambda: "jobsched-spawner" in d.processes().get(pid, ""))
        time.sleep(0.5)
        with open(go, "w"):
            pass
        run = d.wait_final(job)
        text = output(d, run["id"])
        assert "horse" not in text and text.startswith("***\n***") and text.endswith("\nagain ***\n"), text
        assert not files_with_value(d), files_with_value(d)


@case
def a_prefix_of_a_secret_is_shown_without_a_long_delay():
    with Daemon() as d:
        d.start()
        secret = put(os.path.join(d.dir, "secret"), VALUE)
        go = os.path.join(d.dir, "go")
        job = d.add(secrets={"A": secret}, script="printf 'continue? co'; until [ -e '%s' ]; do sleep 0.05; done" % go)["id"]
        run = d.wait_running(job)["id"]
        wait_until("the output is complete before the end", 60, lambda: output(d, run) == "continue? co")
        assert d.runs(job)[0]["state"] == "running"
        open(go, "w").close()


@case
def files_are_opened_as_the_owner_of_the_job():
    with System() as s:
        s.start()
        own = "/home/%s/secret"
        mine = put(own % "alice", VALUE, 0o600, s.uid("alice"))
        theirs = put(own % "bob", "bob-s-own", 0o600, s.uid("bob"))
        root = put("/etc/root-secret", "root-s-own", 0o600)
        team = put("/etc/team-secret", "the-team-s", 0o640)
        os.chown("/etc/team-secret", 0, s.groups["team"][0])
        engine = put("/etc/engine-secret", "the-engine-s", 0o600, s.uid("jobsched"))
        read = 'cat "$JOBSCHED_SECRET_A" | tr a-z A-Z; ls -lL "$JOBSCHED_SECRET_A" | cut -d" " -f1,3'
        assert s.run_job("alice", "sh", "-c", read, secrets={"A": mine}) == VALUE.upper() + "-r-------- alice\n"
        assert s.run_job("alice", "sh", "-c", read, secrets={"A": team}).startswith("THE-TEAM-S")
        for profile in ("compat", "strict"):
            out = s.run_job("alice", "sh", "-c", read + "; cat $JOBSCHED_SECRET_A", secrets={"A": mine}, sandbox=profile)
            assert out == VALUE.upper() + "-r-------- alice\n***", (profile, out)
        for secret in (theirs, root, engine, "file:/etc/shadow"):
            run = s.wait_final("alice", s.add("alice", command=["cat", "/proc/self/fd/3"], secrets={"A": secret})["id"])
            attempt = s.attempts("alice", run["id"])[0]
            assert attempt["outcome"] == "not_started" and "Permission denied" in attempt["error"], attempt
        assert "Permission denied" not in s.said() or VALUE not in s.said()
        # processes of another user cannot open it through /proc while the job runs
        job = s.add("alice", command=["sleep", "20"], secrets={"A": mine})["id"]
        wait_until("it runs", 30, lambda: [r for r in s.runs("alice", job) if r["state"] == "running"])
        pid = s.attempts("alice", s.runs("alice", job)[0]["id"])[0]["pid"]
        assert s.run_as("bob", ["cat", "/proc/%d/fd/3" % pid]).returncode != 0
        s.jobctl("alice", "cancel", "--running", str(job))
        assert s.wait_final("alice", job)["state"] == "cancelled"


@case
def a_stopped_reader_delays_no_other_user():
    with Grouped(engine_conf="max-running = 16\n") as s:  # stopped runs occupy slots
        s.start()
        secret = put(s.home("alice") + "/secret", VALUE, uid=s.uid("alice"))
        stopper = stop_all_of(s.uid("alice"))
        try:
            jobs = [s.add("alice", command=["true"], cwd="/", secrets={"A": secret})["id"] for _ in range(3)]
            pid = wait_until("a reader is stopped", 30, lambda: stopped_processes(s.uid("alice")))[0]
            with open("/proc/%d/cgroup" % pid) as f:
                assert "/uid-%d/" % s.uid("alice") in f.read()
            assert s.run_job("bob", "echo", "well", cwd="/") == "well\n"
            given_up = wait_until("a start is given up", 60, lambda: [
                a for j in jobs for r in s.runs("alice", j) for a in s.attempts("alice", r["id"]) if a["outcome"] == "not_started"])
            assert "could not be read within 5 seconds" in given_up[0]["error"], given_up
        finally:
            os.kill(stopper, signal.SIGKILL)
            os.waitpid(stopper, 0)
        assert s.run_job("alice", "cat", "/dev/fd/3", cwd="/", secrets={"A": secret}) == "***"


main()
