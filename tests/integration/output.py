# SPDX-License-Identifier: Apache-2.0
# Output of runs: constant memory use for large output, slow readers, restarts, size limits.
import os
import re
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, instant, main, sanitized, wait_until

MUCH = int(os.environ.get("MEGABYTES", "200")) << 20


def memory(pid):
    """The peak resident memory of a process, in bytes."""
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"^VmHWM:\s*(\d+)", f.read(), re.M).group(1)) << 10


def output(d, run):
    """The stored output of a run."""
    connection = d.api().connection
    connection.request("GET", "/v1/runs/%d/output" % run)
    return connection.getresponse().read()


def follow(d, run):
    """Connects a client that requests live output and does not read it."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(d.socket)
    s.sendall(b"GET /v1/runs/%d/output?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n" % run)
    return s


@case
def large_output_needs_no_more_memory_and_delays_no_other_run():
    with Daemon() as d:
        d.start()
        d.wait_final(d.add(command=["sh", "-c", "yes | head -c 20000000"])["id"])
        before = memory(d.process.pid), memory(d.spawner())
        job = d.add(command=["sh", "-c", "sleep 0.5; yes 'some line of a log' | head -c %d" % MUCH], output_limit=1 << 20)["id"]
        d.wait_running(job)
        others = [d.add(command=["true"])["id"] for _ in range(20)]
        late = []
        for other in others:
            run = d.wait_final(other)
            assert run["state"] == "succeeded", run
            late.append(instant(run["started_at"]) - instant(run["due_at"]))
        run = d.wait_final(job, 600)
        attempt = d.api().get("/v1/runs/%d" % run["id"])["attempts"][0]
        assert attempt["output_bytes"] == MUCH and attempt["output_dropped"] == MUCH - (1 << 20), attempt
        path = os.path.join(d.state, "output", "%d.1" % run["id"])
        assert os.stat(path).st_size <= (1 << 20) + 64, os.stat(path)
        after = memory(d.process.pid), memory(d.spawner())
        more = after[0] - before[0], after[1] - before[1]
        assert max(more) < (64 if sanitized() else 8) << 20, "the memory of daemon and spawner grew by %d and %d bytes" % more
        return "daemon +%d KiB, spawner +%d KiB, other runs late by at most %d ms" % (
            more[0] >> 10, more[1] >> 10, max(late) * 1000)


@case
def a_follower_that_does_not_read_blocks_neither_the_job_nor_the_daemon():
    with Daemon() as d:
        d.start()
        # the job waits until all followers are connected
        job = d.add(command=["sh", "-c", "sleep 1; yes | head -c 50000000"])["id"]
        run = d.wait_running(job)["id"]
        before = memory(d.process.pid)
        lazy = [follow(d, run) for _ in range(20)]
        done = d.wait_final(job, 120)
        assert done["state"] == "succeeded", done
        assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"
        more = memory(d.process.pid) - before
        assert more < (256 if sanitized() else 32) << 20, "the memory of the daemon grew by %d bytes" % more
        lazy[0].settimeout(60)
        text = b""
        while b"\r\n0\r\n\r\n" not in text[-16:]:
            piece = lazy[0].recv(1 << 16)
            assert piece, "the connection ended early"
            text = text[-16:] + piece
        for s in lazy:
            s.close()
        d.api().get("/v1/status")
        return "daemon +%d KiB" % (more >> 10)


@case
def output_survives_restarts_of_the_daemon_and_of_the_spawner():
    with Daemon() as d:
        d.start()
        job = d.add(command=["sh", "-c", "for i in $(seq 40); do echo line $i; sleep 0.1; done"])["id"]
        run = d.wait_running(job)["id"]
        for turn in range(3):
            time.sleep(0.5)
            if turn == 1:
                os.kill(d.spawner(), signal.SIGHUP)
                continue
            d.kill()
            d.start()
        done = d.wait_final(job, 60)
        assert done["state"] == "succeeded" and done["id"] == run, done
        assert output(d, run) == b"".join(b"line %d\n" % i for i in range(1, 41)), output(d, run)


@case
def no_job_keeps_more_output_than_the_daemon_allows():
    with Daemon(config="output-limit = 100K\n") as d:
        d.start()
        for asked, kept in ((1 << 30, 100 << 10), (50 << 10, 50 << 10)):
            run = d.wait_final(d.add(command=["head", "-c", "300000", "/dev/zero"], output_limit=asked)["id"])
            attempt = d.api().get("/v1/runs/%d" % run["id"])["attempts"][0]
            assert attempt["output_bytes"] == 300000 and attempt["output_dropped"] == 300000 - kept, attempt


@case
def a_job_finishes_while_the_daemon_is_stopped():
    with Daemon() as d:
        d.start()
        mark = os.path.join(d.dir, "written")
        job = d.add(command=["sh", "-c", "sleep 0.5; yes | head -c 5000000; : >'%s'" % mark])["id"]
        d.wait_running(job)
        d.process.send_signal(signal.SIGSTOP)
        try:
            wait_until("the job has written its output", 60, lambda: os.path.exists(mark))
        finally:
            d.process.send_signal(signal.SIGCONT)
        assert d.wait_final(job)["state"] == "succeeded"


main()
