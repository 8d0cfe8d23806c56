# SPDX-License-Identifier: Apache-2.0
# Failures of the storage, and kills of each process, while history is archived: nothing is lost.
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from storage import BUCKET, KEYS, Storage, old_runs, prune, record
from strike import needs_failpoints


@case
def failures_of_the_storage_delay_the_deletion_and_lose_nothing():
    with Storage() as s, Daemon(s.config + "output-archive = yes\n") as d:
        d.env.update(KEYS)
        d.start()
        runs = old_runs(d, ["echo %d" % i for i in range(3)])
        # every third request fails in another way
        how = {0: 500, 1: "cut", 2: "stored", 3: 503, 4: "slow"}
        s.fail = lambda request, name, count: how[count // 3 % 5] if count % 3 == 0 and request.command == "PUT" else None
        d.start()
        prune(d)
        for r in runs:
            record(s, r)
        assert len(s.names("cold/output/")) == 3
        assert all(s.objects[n] for n in s.names()), "an empty object"
        assert d.runs() == []


@case
def while_the_storage_is_down_the_history_is_kept_and_the_status_says_so():
    with Storage() as s, Daemon(s.config) as d:
        d.env.update(KEYS)
        d.start()
        runs = old_runs(d, ["echo one"])
        s.fail = lambda request, name, count: 500
        d.start()
        result = prune(d, check=False)
        assert result.returncode != 0 and "500" in result.stderr, result
        assert [r["id"] for r in d.runs()] == [runs[0]["id"]]
        status = d.api().get("/v1/status")["archive"]
        assert status["place"] == "s3://%s/cold" % BUCKET and "500" in status["failing_why"] and status["failing_since"], status
        assert "archive" in d.jobctl("status").stdout
        doctor = d.jobctl("doctor", check=False)
        assert "cannot be used" in doctor.stdout and doctor.returncode != 0, doctor
        assert "cannot be used" in d.said() and "retention stopped" in d.said(), d.said()
        s.fail = lambda request, name, count: None
        prune(d)
        assert d.runs() == [] and d.api().get("/v1/status")["archive"]["failing_since"] is None


def kill_net(d):
    net = d.net()
    if net:  # the next one has its own failpoints
        os.kill(net, signal.SIGTERM)
        wait_until("jobsched-net has ended", 30, lambda: d.net() != net)


@case
def a_kill_at_each_step_loses_nothing_and_repeats_only_objects_of_the_same_name():
    needs_failpoints()
    with Storage() as s, Daemon(s.config + "output-archive = yes\n") as d:
        d.env.update(KEYS)
        expected = 0
        for n, point in enumerate(("storage.pre_send=kill@2", "storage.post_answer=kill@2", "prune.pre_commit=kill", "prune.post_commit=kill")):
            marks = os.path.join(d.dir, "marks%d" % n)
            os.makedirs(marks)
            d.start()
            runs = old_runs(d, ["echo %d %d" % (n, i) for i in range(2)])
            expected += len(runs)
            before, stored = dict(s.objects), len(s.puts)
            d.start(env=dict(JOBSCHED_FAILPOINTS=point, JOBSCHED_FAILPOINTS_DIR=marks))
            prune(d, check=False)
            assert os.listdir(marks), point + " was not reached"
            if "prune" in point:
                d.ended()
                d.start()
            prune(d)
            assert d.runs() == [], point
            for r in runs:
                assert record(s, r)["state"] == "succeeded"
            assert all(s.objects[k] == v for k, v in before.items()), "an older object has changed"
            assert len(s.names("cold/output/")) == expected, (point, s.names())
            assert len(set(s.puts[stored:])) == 6, (point, s.puts[stored:])  # 2 runs, 2 jobs, 2 outputs
            d.stop()
            kill_net(d)


@case
def a_daemon_that_is_killed_during_an_upload_repeats_it():
    with Storage() as s, Daemon(s.config + "output-archive = yes\n") as d:
        d.env.update(KEYS)
        d.start()
        runs = old_runs(d, ["echo 1", "echo 2"])
        d.start()
        killed = []

        def kill_daemon(request, name, count):
            if request.command == "PUT" and len(s.puts) == 2 and not killed:
                killed.append(d.kill())
        s.fail = kill_daemon
        prune(d, check=False)
        wait_until("the daemon is killed", 60, lambda: killed)
        d.start()
        assert sorted(r["id"] for r in d.runs()) == sorted(r["id"] for r in runs), "history was deleted before it was uploaded"
        prune(d)
        assert len(set(s.puts)) == 6 and d.runs() == [], s.puts


@case
def a_killed_jobsched_net_does_not_lose_an_upload():
    with Storage() as s, Daemon(s.config) as d:
        d.env.update(KEYS)
        d.start()
        runs = old_runs(d, ["true"])
        d.start()
        d.api().get("/v1/archive/runs")  # starts jobsched-net
        net = d.net()
        killed = []

        def kill_once(request, name, count):
            if request.command == "PUT" and not killed:
                killed.append(os.kill(net, signal.SIGKILL))
                return "cut"
        s.fail = kill_once
        prune(d)
        assert killed and record(s, runs[0])["id"] == runs[0]["id"] and d.runs() == []


if __name__ == "__main__":
    main()
