# SPDX-License-Identifier: Apache-2.0
# Signs of life and progress: stalled attempts, every channel, and what survives kills and a re-exec.
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import JOBCTL, Daemon, case, main, wait_until

SD_NOTIFY = """import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["NOTIFY_SOCKET"])
for line in sys.argv[1].split(","):
    time.sleep(0.5) if line == "wait" else s.send(line.encode())
"""


def outcomes(d, run):
    return [a["outcome"] for a in d.api().get("/v1/runs/%d/attempts" % run)["attempts"]]


def running(d, job, seconds=30):
    def there():
        runs = d.runs(job)
        return runs and runs[0]["state"] == "running" and runs[0]
    return wait_until("job %s runs" % job, seconds, there)


def progress(d, job, percent, seconds=30):
    """Waits until the run of the job shows this percentage, and returns the run."""
    def there():
        run = d.runs(job)[0]
        return run["progress"] and run["progress"]["percent"] == percent and run
    return wait_until("job %s reports %s" % (job, percent), seconds, there)


@case
def a_silent_attempt_is_stalled_and_retried_and_a_lively_one_is_not():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "tried")
        silent = d.add(heartbeat=10, retries=1, backoff="fixed:50ms", grace=1,
                       command=["sh", "-c", 'echo $JOBSCHED_ATTEMPT >>"$1"; [ $JOBSCHED_ATTEMPT = 2 ] || sleep 60', "sh", log])["id"]
        never = d.add(heartbeat=1, command=["sleep", "60"])["id"]
        # 24 seconds of work with a sign every half second, by each channel; on a busy machine a sign can be many seconds late
        loop = "for i in $(seq 48); do %s; sleep 0.5; done"
        alive = [d.add(heartbeat=20, command=["sh", "-c", loop % sign])["id"] for sign in (
            "echo jobsched:progress=$((i * 2)) step $i >&$JOBSCHED_NOTIFY_FD", os.path.abspath(JOBCTL) + " progress")]
        alive.append(d.add(heartbeat=20, command=[sys.executable, "-c", SD_NOTIFY, "WATCHDOG=1,wait,STATUS=two,wait," * 24])["id"])
        alive.append(d.add(heartbeat=20, command=[sys.executable, "-c", SD_NOTIFY, "EXTEND_TIMEOUT_USEC=90000000" + ",wait" * 48])["id"])
        alive.append(d.add(heartbeat=20, heartbeat_on_output="yes", command=["sh", "-c", loop % "echo line"])["id"])
        run = d.wait_final(silent)
        assert (run["state"], run["failures"]) == ("succeeded", 1), run
        assert outcomes(d, run["id"]) == ["stalled", "succeeded"], outcomes(d, run["id"])
        assert "gave no sign for 10s" in d.api().get("/v1/runs/%d/attempts" % run["id"])["attempts"][0]["error"]
        run = d.wait_final(never)
        assert (run["state"], run["reason"]) == ("timed_out", "stalled"), run
        for job in alive:
            run = d.wait_final(job, 180)
            assert (run["state"], run["attempt"]) == ("succeeded", 1), (job, run)


@case
def progress_is_shown_and_survives_a_restart_of_the_daemon_and_of_the_spawner_program():
    with Daemon() as d:
        d.start()
        go = os.path.join(d.dir, "go")
        job = d.add(name="copy", heartbeat=60, command=["sh", "-c", """
            sleep 2
            echo "jobsched:progress=10 copying	a\\033[31mb" >&$JOBSCHED_NOTIFY_FD
            until [ -e "$1" ]; do sleep 0.1; done
            echo jobsched:progress=70 almost >&$JOBSCHED_NOTIFY_FD
            until [ -e "$1.2" ]; do sleep 0.1; done""", "sh", go])["id"]
        run = progress(d, job, 10)
        assert "\x1b" not in run["progress"]["text"] and run["progress"]["text"].startswith("copying a"), run
        assert run["estimated_end"], run
        shown = d.jobctl("show", "copy#%d" % run["id"]).stdout
        assert "10% copying" in shown and "expected end" in shown, shown
        assert "10% copying" in d.jobctl("runs", "copy").stdout
        assert "running 10%" in d.jobctl("list").stdout
        d.kill()
        d.start()
        assert progress(d, job, 10)["id"] == run["id"]
        os.kill(d.spawner(), signal.SIGHUP)  # executes its program again
        open(go, "w").close()
        assert progress(d, job, 70)["progress"]["text"] == "almost"
        open(go + ".2", "w").close()
        assert d.wait_final(job)["state"] == "succeeded"
        events = [e for e in d.api().get("/v1/events?what=run.progress")["events"]]
        assert [e["detail"].split()[0] for e in sorted(events, key=lambda e: e["id"])] == ["10%", "70%"], events
        assert not os.listdir(os.path.join(d.runtime, "jobsched", "notify"))


@case
def a_run_that_falls_silent_is_ended_while_the_daemon_is_dead():
    with Daemon() as d:
        d.start()
        job = d.add(heartbeat=10, retries=1, backoff="fixed:50ms",
                    command=["sh", "-c", "[ $JOBSCHED_ATTEMPT = 2 ] || exec sleep 60"])["id"]
        run = running(d, job)
        pid = d.api().get("/v1/runs/%d/attempts" % run["id"])["attempts"][0]["pid"]
        d.kill()
        wait_until("the spawner ends the silent worker", 30, lambda: not os.path.exists("/proc/%d" % pid))
        d.start()
        run = d.wait_final(job)
        assert outcomes(d, run["id"]) == ["stalled", "succeeded"], outcomes(d, run["id"])


@case
def a_command_that_reports_without_pause_does_not_delay_others():
    with Daemon() as d:
        d.start()
        stop = os.path.join(d.dir, "stop")
        flood = d.add(heartbeat=60, command=[sys.executable, "-c", """
import os, sys
fd = int(os.environ["JOBSCHED_NOTIFY_FD"])
n = 0
while not os.path.exists(sys.argv[1]):
    n += 1
    os.write(fd, b"jobsched:progress=%d line %d\\n" % (n % 101, n) * 50)
os.write(fd, b"x" * 3000 + b"\\njobsched:progress=99 last\\n")
""", stop])["id"]
        running(d, flood)
        for _ in range(10):
            assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"
        assert d.runs(flood)[0]["state"] == "running"
        open(stop, "w").close()
        assert d.wait_final(flood)["state"] == "succeeded"


main()
