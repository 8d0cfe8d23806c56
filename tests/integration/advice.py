# SPDX-License-Identifier: Apache-2.0
# Types every command that a message or 'jobctl why' suggests and checks that it succeeds.
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import JOBCTL, Daemon, case, main, wait_until

# Commands in quotes or parentheses, and after a colon up to the end of the line.
ADVICE = re.compile(r"'((?:jobctl|kill) [^']+)'|\(((?:jobctl|kill) [^()]+)\)|: (jobctl [^();]+)$", re.M)
WORDS = {"OTHER": "another-name", "COMMAND": "true"}
ASKS = ("rm", "purge")  # verbs that ask for confirmation
SHOWN = {}


def advice(text):
    return [next(filter(None, groups)) for groups in ADVICE.findall(text)]


def typed(command):
    """Fills in the words in capitals and adds --yes to verbs that ask."""
    for word, value in WORDS.items():
        command = re.sub(r"\b%s\b" % word, value, command)
    assert command.startswith("kill -CONT ") or not re.search(r"\b[A-Z]{3,}\b", command), "no value for a word in capitals: " + command
    return command + " --yes" if set(command.split()) & set(ASKS) else command


def follow(d, text, *wanted, skip=()):
    """Runs the commands in the text. 'wanted': prefixes of commands that must be among them."""
    found = advice(text)
    for w in wanted:
        assert any(a.startswith(w) for a in found), (w, found, text)
    assert found, text
    for a in found:
        if any(a.startswith(s) for s in skip):
            continue
        env = dict(d.env, PATH=os.path.dirname(os.path.abspath(JOBCTL)) + ":" + os.environ["PATH"])
        result = subprocess.run(["timeout", "60", "sh", "-c", typed(a)], env=env, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL)
        assert result.returncode == 0, (a, result.returncode, result.stderr, "advised by", text)
        SHOWN[a] = text


def said(d, *words, code=None):
    result = d.jobctl(*words, check=False)
    assert code is None or result.returncode == code, (words, result.returncode, result.stderr)
    return result.stdout + result.stderr


def why(d, job):
    return said(d, "why", str(job), code=0)


def hourly(d, name, **more):
    return d.add(name=name, command=["true"], schedule=["every 1h"], **more)["id"]


def running(d, name, **more):
    job = d.add(name=name, command=["sleep", "300"], schedule=["manual"], **more)["id"]
    run = d.api().post("/v1/jobs/%d/run" % job)["id"]
    wait_until("it runs", 20, lambda: d.api().get("/v1/runs/%d" % run)["state"] == "running")
    return job


@case
def suggestions_about_cancelled_and_finished_jobs_work():
    with Daemon() as d:
        d.start()
        running(d, "busy")
        follow(d, said(d, "cancel", "busy"), "jobctl cancel busy#", "jobctl resume")
        for verb in (["run", "a"], ["set", "a", "priority=1"], ["cancel", "a"], ["why", "a"]):
            job = hourly(d, "a")
            d.jobctl("cancel", "a")
            follow(d, said(d, *verb), "jobctl resume %d" % job)
            assert d.api().get("/v1/jobs/%d" % job)["state"] == "active", verb
            d.jobctl("rm", "--yes", "a")
        gone = hourly(d, "b")
        d.jobctl("cancel", "b")
        hourly(d, "b")
        follow(d, said(d, "resume", str(gone), code=6), "jobctl set")
        d.jobctl("resume", str(gone))
        once = d.add(name="once", command=["true"])["id"]
        d.wait_final(once)
        for verb in (["resume", "once"], ["cancel", "once"], ["why", "once"]):
            follow(d, said(d, *verb), "jobctl run %d" % once)
            wait_until("it is finished again", 20, lambda: d.api().get("/v1/jobs/%d" % once)["state"] == "finished")
        past = d.api().post("/v1/jobs?paused=true", {"name": "past", "command": ["true"]})["id"]
        d.jobctl("cancel", "past")
        follow(d, said(d, "resume", "past", code=0), "jobctl run %d" % past)
        busy = running(d, "removed")
        follow(d, said(d, "rm", "--yes", str(busy)), "jobctl cancel removed#")


@case
def suggestions_about_pauses_work():
    with Daemon() as d:
        d.start()
        hourly(d, "tick", tags={"team": "web"})
        d.jobctl("queue", "add", "slow")
        hourly(d, "slow", queue="slow")
        running(d, "busy")
        follow(d, said(d, "pause", "busy"), "jobctl cancel busy#")
        for pause in (["tick"], ["--all"], ["--tag", "team=web"], ["--owner", str(os.getuid())]):
            for ask in (["why", "tick"], ["run", "tick"]):
                d.jobctl("pause", *pause, "--reason", "works")
                follow(d, said(d, *ask), "jobctl resume")
                d.jobctl("run", "tick", "--wait")
        d.jobctl("pause", "--queue", "slow")
        follow(d, why(d, "slow"), "jobctl resume --queue slow")
        d.jobctl("run", "slow", "--wait")
        for ask in (["why", "tick"], ["run", "tick"], ["status"]):
            d.jobctl("freeze")
            follow(d, said(d, *ask), "jobctl thaw")
            d.jobctl("run", "tick", "--wait")
        follow(d, said(d, "add", "-n", "later", "--paused", "--", "true"), "jobctl resume")
        d.jobctl("wait", "later")
        d.jobctl("freeze")
        follow(d, said(d, "add", "--", "true"), "jobctl why")
        d.jobctl("thaw")


@case
def suggestions_about_runs_work():
    with Daemon() as d:
        d.start()
        text = said(d, "add", "-n", "quick", "--", "true")
        follow(d, text, "jobctl log -f")
        d.jobctl("wait", "quick")
        follow(d, why(d, "quick"), "jobctl log quick#")
        for name, spec in (("failed", {"command": ["false"]}), ("missing", {"command": ["/no/such"]}),
                           ("dead", {"command": ["false"], "retries": 1, "backoff": "fixed:1s"})):
            d.wait_final(d.add(name=name, **spec)["id"])
            follow(d, why(d, name), "jobctl run")
        follow(d, why(d, "dead"), "jobctl dead show dead#")
        again = d.add(name="again", command=["false"], retries=1, backoff="fixed:1h")["id"]
        wait_until("it waits", 20, lambda: "attempt failed" in why(d, again))
        follow(d, why(d, again), "jobctl log again#")
        d.add(name="lap", command=["sleep", "300"], schedule=["every 1s"], overlap="skip")
        wait_until("a slot is skipped", 30, lambda: "still running" in why(d, "lap"))
        follow(d, why(d, "lap"), "jobctl set lap overlap=queue", skip=("jobctl log -f",))
        d.jobctl("pause", "lap")
        follow(d, wait_until("planned runs are held", 20, lambda: (lambda t: "jobctl resume lap" in t and t)(why(d, "lap"))),
               skip=("jobctl log -f",))
        d.jobctl("cancel", "--running", "lap")
        hourly(d, "never")
        follow(d, said(d, "log", "never", code=3), "jobctl log -f never", skip=("jobctl log -f",))
        follow(d, said(d, "undo", "never", code=6), "jobctl history")
        follow(d, why(d, "never"), "jobctl next never")
        d.add(name="byhand", command=["true"], schedule=["manual"])
        follow(d, why(d, "byhand"), "jobctl run byhand")
        d.add(name="gated", command=["true"], when=["load<0.001"])
        wait_until("it waits for the load", 20, lambda: "condition" in why(d, "gated"))
        follow(d, why(d, "gated"), "jobctl set gated when=")
        wait_until("the run starts without its condition", 20, lambda: "succeeded" in d.jobctl("runs", "gated").stdout)


@case
def suggestions_about_names_queues_and_nodes_work():
    with Daemon() as d:
        d.start()
        job = hourly(d, "backup")
        follow(d, said(d, "show", "nonesuch", code=3), "jobctl list")
        follow(d, said(d, "add", "-n", "backup", "--", "true", code=6), "jobctl rm %d" % job)
        hourly(d, "backup", key="K")
        follow(d, said(d, "add", "--key", "K", "--", "false", code=6), "jobctl show")
        follow(d, said(d, "add", "-q", "narrow", "--", "true", code=2), "jobctl queue add narrow", "jobctl queue list")
        once = d.add(name="once", command=["true"], queue="narrow")["id"]
        d.wait_final(once)
        hourly(d, "user", queue="narrow")
        follow(d, said(d, "queue", "rm", "narrow", code=6), "jobctl list")
        d.jobctl("rm", "--yes", "user")
        d.jobctl("queue", "rm", "narrow")
        follow(d, said(d, "run", "once", code=6), "jobctl queue add narrow", "jobctl set %d queue=default" % once)
        d.jobctl("run", "once", "--wait")
        follow(d, said(d, "add", "--template", "nonesuch", code=3), "jobctl template list")
        d.add(name="gpu", command=["true"], node_labels=["gpu=yes"])
        follow(d, why(d, "gpu"), "jobctl nodes")
        node = d.api().get("/v1/status")["node"]["name"]
        d.jobctl("node", "drain", node)
        waits = d.add(name="waits", command=["true"])["id"]
        follow(d, why(d, "waits"), "jobctl node undrain " + node)
        d.wait_final(waits)
        pid = d.spawner()
        os.kill(pid, signal.SIGSTOP)
        wait_until("the spawner is stopped", 20, lambda: "jobsched-spawne) T" in open("/proc/%d/stat" % pid).read())
        follow(d, why(d, "backup"), "kill -CONT %d" % pid)
        assert said(d, "status", code=0)


main()
