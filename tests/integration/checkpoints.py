# SPDX-License-Identifier: Apache-2.0
# The directory that the attempts of a run share: it survives retries, kills and restarts, is removed with the end of the run,
# and links in it are not followed.
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from system import System


def shell(script, *args):
    return ["sh", "-c", script, "sh"] + list(args)


def states(d):
    return [n for n in os.listdir(os.path.join(d.state, "output")) if n.endswith(".state")]


def gone(d):
    wait_until("the directory is removed", 60, lambda: not states(d))


@case
def a_retried_run_continues_where_the_last_attempt_was():
    with Daemon() as d:
        d.start()
        out = os.path.join(d.dir, "out")
        for sandbox in ("compat", "standard", "strict"):
            # each attempt does one step of five and fails, but for the last
            job = d.add(checkpoint="yes", retries=9, backoff="fixed:10ms", sandbox=sandbox, command=shell(
                'cd "$JOBSCHED_STATE" || exit 9; n=$(cat step 2>/dev/null || echo 0); n=$((n + 1)); echo $n >step.new && mv step.new step\n'
                'echo "$n $JOBSCHED_PREVIOUS_OUTCOME $JOBSCHED_PREVIOUS_EXIT"; [ $n = 5 ] || exit $n'))["id"]
            run = d.wait_final(job, 60)
            if run["attempt"] == 1 and "not supported" in str(d.api().get("/v1/runs/%d" % run["id"])):
                continue  # the machine lacks a part of the profile
            assert (run["state"], run["attempt"]) == ("succeeded", 5), (sandbox, run, d.jobctl("log", "#%d" % run["id"]).stdout)
            assert d.jobctl("log", "#%d" % run["id"]).stdout.strip() == "5 failed 4"
        gone(d)
        # two runs of one job have a directory each, and other commands have none
        run = d.wait_final(d.add(command=shell('echo "${JOBSCHED_STATE-none}" >"$1"', out))["id"])
        assert run["state"] == "succeeded"
        with open(out) as f:
            assert f.read() == "none\n"


@case
def the_directory_survives_kills_of_the_daemon_and_of_the_spawner():
    with Daemon() as d:
        d.start()
        job = d.add(checkpoint="yes", command=shell(
            'cd "$JOBSCHED_STATE"; if [ -e begun ]; then echo "again after $JOBSCHED_PREVIOUS_OUTCOME"; exit 0; fi; echo x >begun; exec sleep 1000'))["id"]
        run = d.wait_running(job)
        wait_until("the checkpoint is written", 60, lambda: states(d) and os.path.exists(
            os.path.join(d.state, "output", states(d)[0], "begun")))
        d.kill()
        d.start()
        os.kill(d.spawner(), signal.SIGKILL)
        done = d.wait_final(job, 90)
        assert (done["state"], done["id"], done["lost"]) == ("succeeded", run["id"], 1), done
        said = d.jobctl("log", "#%d" % run["id"]).stdout.strip()
        assert said == "again after lost", said
        gone(d)


@case
def removal_follows_no_link_and_copes_with_closed_and_deep_directories():
    with Daemon() as d:
        d.start()
        kept = os.path.join(d.dir, "kept")
        os.mkdir(kept)
        open(os.path.join(kept, "file"), "w").close()
        job = d.add(checkpoint="yes", command=shell(
            'cd "$JOBSCHED_STATE" || exit 9; ln -s "$1" link; mkdir -p a/b; echo x >a/b/c; ln -s "$1" a/link; chmod 000 a/b; mkdir -m 500 ro; '
            'p=.; for i in $(seq 60); do p=$p/d; done; mkdir -p "$p"; mkfifo fifo; ln -s "$1" ..data', kept))["id"]
        assert d.wait_final(job)["state"] == "succeeded"
        gone(d)
        assert os.listdir(kept) == ["file"]
        # the directory of a run that another store has left is not given to a new run
        other = os.path.join(d.state, "output", "%d.state" % (d.runs(job)[0]["id"] + 1))
        os.mkdir(other, 0o700)
        open(os.path.join(other, "alien"), "w").close()
        run = d.wait_final(d.add(checkpoint="yes", command=shell('[ -z "$(ls "$JOBSCHED_STATE/")" ]'))["id"], 60)
        assert run["state"] == "succeeded", run
        gone(d)


@case
def files_of_a_run_belong_to_its_owner_and_root_follows_no_link_in_them():
    with System() as s:
        s.start()
        place = s.spawner_state + "/output"
        kept = os.path.join(s.home("bob"), "kept")
        os.makedirs(kept)
        os.chown(kept, s.uid("bob"), s.uid("bob"))
        open(os.path.join(kept, "file"), "w").close()
        script = (
            'cd "$JOBSCHED_STATE" || exit 9; echo "attempt=$JOBSCHED_ATTEMPT" >>"$JOBSCHED_RESULT" || exit 8\n'
            'if [ $JOBSCHED_ATTEMPT = 1 ]; then echo x >mine; ln -s /etc/passwd link; ln -s "$1" dir; mkdir -m 000 closed; exit 1; fi\n'
            'stat -c "%U %a" . mine; id -un; cat mine')
        for sandbox in ("compat", "standard", "strict"):
            job = s.add("alice", checkpoint="yes", results="yes", gate="[ $(id -un) = alice ]", retries=1, backoff="fixed:10ms",
                        sandbox=sandbox, command=shell(script, kept))["id"]
            run = s.wait_final("alice", job, 60)
            said = s.output("alice", run["id"])
            if run["state"] != "succeeded" and "not supported" in str(s.attempts("alice", run["id"])):
                continue  # the machine lacks a part of the profile
            assert run["state"] == "succeeded" and said == "alice 700\nalice 644\nalice\nx\n", (sandbox, said, s.attempts("alice", run["id"]))
            assert run["results"] == {"attempt": "2"}, run
        # while a run exists, other processes of its owner and other users do not reach its directory
        job = s.add("alice", checkpoint="yes", command=shell("cd $JOBSCHED_STATE; echo x >there; exec sleep 1000"))["id"]
        run = wait_until("the job runs", 60, lambda: [r for r in s.runs("alice", job) if r["state"] == "running"])[0]
        path = "%s/%d.state/there" % (place, run["id"])
        wait_until("the file is there", 60, lambda: os.path.exists(path))
        assert all(s.run_as(user, ["cat", path]).returncode == 1 for user in ("alice", "bob"))
        s.jobctl("alice", "cancel", "#%d" % run["id"])
        s.wait_final("alice", job, 60)
        wait_until("the directories are removed", 60, lambda: not [n for n in os.listdir(place) if n.endswith(".state")])
        assert os.listdir(kept) == ["file"] and os.path.exists("/etc/passwd")


main()
