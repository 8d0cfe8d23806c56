# SPDX-License-Identifier: Apache-2.0
# Gates: start, delay, skip, failure, time limit, and kills while a gate runs or delays.
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until


def outcomes(d, run):
    return [(a["outcome"], a["exit_code"]) for a in d.api().get("/v1/runs/%d/attempts" % run)["attempts"]]


def read(path):
    with open(path) as f:
        return f.read()


@case
def the_exit_code_of_the_gate_decides():
    with Daemon() as d:
        d.start()
        out = os.path.join(d.dir, "out")
        # the gate has the environment of the command, and does not take its standard input
        go = d.add(gate='cat; echo "gate $JOBSCHED_PARAM_color"; [ "$COLOR" = red ]', env={"COLOR": "red"}, params={"color": "blue"},
                   stdin="input\n", command=["sh", "-c", 'cat >"$1"; echo "${JOBSCHED_GATE-unset}" >>"$1"', "sh", out])["id"]
        run = d.wait_final(go)
        assert run["state"] == "succeeded" and read(out) == "input\nunset\n", (run, read(out))
        assert "gate blue" in d.jobctl("log", "#%d" % run["id"]).stdout
        # the exit code of the command is not that of a gate
        run = d.wait_final(d.add(gate="true", command=["sh", "-c", "exit 75"])["id"])
        assert (run["state"], run["exit_code"], outcomes(d, run["id"])) == ("failed", 75, [("failed", 75)]), run
        skip = d.add(name="skip", gate="exit 77", command=["touch", out + ".no"])["id"]
        run = d.wait_final(skip)
        assert (run["state"], run["reason"], run["failures"]) == ("skipped", "gate", 0), run
        assert "its gate exited with 77" in d.jobctl("why", "skip#%d" % run["id"]).stdout
        run = d.wait_final(d.add(gate="exit 3", retries=1, backoff="fixed:50ms", command=["touch", out + ".no"])["id"])
        assert (run["state"], run["failures"]) == ("failed", 2), run
        assert outcomes(d, run["id"]) == [("gated", 3)] * 2, outcomes(d, run["id"])
        assert "its gate exited with 3" in d.jobctl("show", "#%d" % run["id"]).stdout
        run = d.wait_final(d.add(gate="sleep 1000", gate_timeout=1, command=["touch", out + ".no"])["id"], 60)
        assert (run["state"], outcomes(d, run["id"])) == ("failed", [("gated", 124)]), run
        run = d.wait_final(d.add(gate="exit 0", script="#!/bin/sh\necho script >\"$HOME_OUT\"\n", env={"HOME_OUT": out})["id"])
        assert run["state"] == "succeeded" and read(out) == "script\n", run
        assert not os.path.exists(out + ".no")
        status, answer = d.api().call("POST", "/v1/jobs", {"http": "GET", "url": "https://example.org/", "gate": "true"})
        assert status == 400 and answer["error"]["field"] == "gate", answer


@case
def a_delayed_run_starts_once_when_the_gate_opens_also_after_kills():
    with Daemon() as d:
        d.start()
        door, out = os.path.join(d.dir, "door"), os.path.join(d.dir, "out")
        job = d.add(name="wait", schedule="manual", gate='echo look >>"%s"; [ -e "%s" ] || exit 75' % (out + ".looks", door),
                    command=["sh", "-c", 'echo started $JOBSCHED_ATTEMPT >>"$1"', "sh", out])["id"]
        run = d.api().post("/v1/jobs/wait/run", {})["id"]

        def delayed():
            r = d.api().get("/v1/runs/%d" % run)
            return r["state"] == "queued" and r["attempt"] and r
        r = wait_until("the gate delays the run", 60, delayed)
        assert (r["reason"], r["failures"]) == ("gate", 0), r
        assert "its gate delays it" in d.jobctl("why", "wait").stdout
        other = d.api().call("POST", "/v1/jobs/wait/run", {})  # the delayed run counts as running
        d.kill()
        d.start()
        os.kill(d.spawner(), signal.SIGKILL)
        open(door, "w").close()
        wait_until("the run has ended", 90, lambda: d.api().get("/v1/runs/%d" % run)["ended_at"])
        r = d.api().get("/v1/runs/%d" % run)
        assert r["state"] == "succeeded" and r["first_start"], r
        wait_until("all runs have ended", 90, lambda: all(x["ended_at"] for x in d.runs(job)))
        done = [x for x in d.runs(job) if x["state"] == "succeeded"]
        assert len(read(out).splitlines()) == len(done), (read(out), done, other)
        assert outcomes(d, run)[0] == ("gated", 75) and outcomes(d, run)[-1] == ("succeeded", 0), outcomes(d, run)


@case
def a_delayed_run_expires_at_its_deadline_and_a_running_gate_can_be_cancelled():
    with Daemon() as d:
        d.start()
        late = d.add(deadline=3, gate="exit 75", command=["true"])["id"]
        slow = d.add(gate="sleep 1000", command=["true"])["id"]
        run = d.wait_running(slow)
        d.jobctl("cancel", "#%d" % run["id"])
        assert d.wait_final(slow, 60)["state"] == "cancelled"
        run = d.wait_final(late, 60)
        assert (run["state"], run["reason"], run["attempt"] >= 1) == ("expired", "deadline (gate)", True), run


main()
