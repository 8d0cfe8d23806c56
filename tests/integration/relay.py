# SPDX-License-Identifier: Apache-2.0
# The output of a run, read and followed through nodes that did not run it.
import contextlib
import http.client
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import JOBCTL, Connection, case, main, wait_until
from nodes import Cluster, run_on

# writes all byte values; no two lines are equal
BYTES = "import sys; sys.stdout.buffer.write(b''.join(b'%%d\\0\\r\\n\\xff\\x80' %% i + bytes(range(256)) for i in range(%d)))"


def ask(d, run, query=""):
    c = Connection(d.socket, 60)
    c.request("GET", "/v1/runs/%d/output%s" % (run, query))
    return c.getresponse()


def read_output(d, run, query=""):
    answer = ask(d, run, query)
    content = answer.read()
    assert answer.status == 200, (answer.status, content[:300])
    # only the node that has the file knows where the gap is
    return content, {k: v for k, v in answer.getheaders() if k.startswith("X-Jobsched") and k != "X-Jobsched-Output-Gap"}


def rows(c):
    count = "SELECT (SELECT count(*) FROM %s) + (SELECT count(*) FROM %s)"
    if c.server:
        return int(c.server.sql(count % ("jobsched.relays", "jobsched.relay_parts"))[0][0])
    with contextlib.closing(sqlite3.connect(c.store, timeout=20)) as db:
        return db.execute(count % ("relays", "relay_parts")).fetchone()[0]


def wait_no_relay_rows(c, seconds=40):
    wait_until("no relay row is left", seconds, lambda: rows(c) == 0, 0.1)


def fifo(c, name):
    path = os.path.join(c.dir, name)
    os.mkfifo(path)
    return path


def write(path, text="go\n"):
    with open(path, "w") as f:
        f.write(text)


def same_bytes(postgres):
    with Cluster(3, postgres) as c:
        holder = c.nodes[1]
        took = ""
        for name, script, more in (("big", BYTES % 9000, {}), ("cut", BYTES % 4000, {"output_limit": 300000}), ("small", "print('few words')", {}),
                                   ("silent", "pass", {})):
            job, run = run_on(c, holder, name=name, command=["python3", "-c", script], **more)
            holder.wait_final(job)
            for query in ("", "?from=1000", "?tail=100000", "?tail=10", "?from=100000000", "?follow=true"):
                began = time.monotonic()
                here = read_output(holder, run, query)
                local = time.monotonic() - began
                for d in c.others(holder):
                    began = time.monotonic()
                    there = read_output(d, run, query)
                    if name == "big" and not query:
                        assert len(here[0]) > 2000000
                        took = "%d bytes: %.3f s here, %.3f s through another node" % (len(here[0]), local, time.monotonic() - began)
                    assert there == here, (name, query, len(there[0]), len(here[0]), there[1], here[1])
            if name == "cut":
                assert int(here[1]["X-Jobsched-Output-Dropped"]) > 0, here[1]
        shown = subprocess.run([JOBCTL, "log", "big"], env=c.nodes[0].env, stdout=subprocess.PIPE, check=True).stdout
        assert shown == read_output(holder, c.nodes[0].runs(c.nodes[0].api().get("/v1/jobs/big")["id"])[0]["id"])[0]
        wait_no_relay_rows(c)
        return took


def followed_live(postgres):
    with Cluster(3, postgres) as c:
        holder, reader = c.nodes[2], c.nodes[0]
        pauses = [fifo(c, n) for n in ("first", "second")]
        job, run = run_on(c, holder, name="live", script="echo one; read _ <%s; echo two; read _ <%s; echo three" % tuple(pauses))
        answers = [ask(d, run, "?follow=true") for d in (reader, c.nodes[1], holder)]
        for a in answers:
            assert a.read1() == b"one\n"
        began = time.monotonic()
        write(pauses[0])
        assert answers[0].read1() == b"two\n"
        took = time.monotonic() - began
        assert [a.read1() for a in answers[1:]] == [b"two\n"] * 2
        assert read_output(reader, run)[0] == b"one\ntwo\n", "what is there is shown while it runs"
        holder.api().post("/v1/nodes/n2/drain")
        write(pauses[1])
        assert [a.read() for a in answers] == [b"three\n"] * 3
        # a follower that connects before the run has started
        for i in range(3):
            holder.api().post("/v1/nodes/n%d/drain" % i)
        early = ask(reader, holder.add(name="early", script="echo early; sleep 1; echo late")["run"], "?follow=true")
        holder.api().post("/v1/nodes/n2/undrain")
        assert early.read1() == b"early\n" and early.read() == b"late\n"
        wait_no_relay_rows(c)
        return "%.0f ms from the holder's writer to the reader elsewhere" % (took * 1000)


def holder_killed(postgres):
    with Cluster(3, postgres) as c:
        holder, reader = c.nodes[1], c.nodes[0]
        ended, run = run_on(c, holder, name="ended", script="seq 1 30000")
        holder.wait_final(ended)
        all_of_it = read_output(holder, run)[0]
        pause = fifo(c, "pause")
        job, going = run_on(c, holder, name="going", script="echo attempt $JOBSCHED_ATTEMPT; [ $JOBSCHED_ATTEMPT = 2 ] || read _ <%s" % pause, retries=1,
                            backoff="fixed:1s")
        follower = subprocess.Popen([JOBCTL, "log", "-f", "going"], env=reader.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert follower.stdout.readline() == "attempt 1\n"
        raw = ask(reader, going, "?follow=true")
        assert raw.read1() == b"attempt 1\n"
        spawner = holder.spawner()
        holder.kill()
        os.kill(spawner, signal.SIGKILL)  # no process can report the result of the attempt
        began = time.monotonic()
        try:
            assert raw.read() == b"" and False, "the response ended without an error"
        except http.client.IncompleteRead:
            pass
        noticed = time.monotonic() - began
        assert "which has the output of run %d, is not there any more" % going in reader.said(), "the end of the lease was not logged"
        shown = reader.jobctl("log", "ended")
        assert shown.stdout and all_of_it.decode().endswith(shown.stdout) and len(shown.stdout) == 8192, len(shown.stdout)
        assert "only the end is shown: node 'n1', which has the output of run" in shown.stderr, shown.stderr
        status, answer = reader.api().call("GET", "/v1/runs/%d/output?attempt=1" % going)
        assert status == 503 and "n1" in answer["error"]["message"], answer
        out, said = follower.communicate(timeout=90)
        assert out == "attempt 2\n" and follower.returncode == 0, (out, said)
        assert "n1" in said, said
        holder.start()
        assert wait_until("the complete output is available again", 30, lambda: read_output(reader, run)[0] == all_of_it)
        assert reader.api().get("/v1/runs/%d" % going)["attempts"][0]["outcome"] == "lost"
        lost = [read_output(d, going, "?attempt=1") for d in c.nodes]
        assert lost[0][0] == b"attempt 1\n" and lost[1:] == lost[:1] * 2, lost  # also for a lost attempt
        wait_no_relay_rows(c)
        return "the loss of the holder was detected after %.1f s" % noticed


def reader_gone(postgres):
    with Cluster(3, postgres) as c:
        holder, reader, other = c.nodes
        pause = fifo(c, "pause")
        job, run = run_on(c, holder, name="going", script="echo one; read _ <%s; echo two" % pause)
        answer = ask(other, run, "?follow=true")
        assert answer.read1() == b"one\n" and rows(c) > 0
        answer.close()
        wait_no_relay_rows(c, 10)
        doomed = ask(reader, run, "?follow=true")
        assert doomed.read1() == b"one\n"
        reader.kill()
        wait_no_relay_rows(c)
        answer = ask(other, run, "?follow=true")
        assert answer.read1() == b"one\n"
        write(pause)
        assert answer.read() == b"two\n"
        if not postgres:
            return  # a stopped SQLite writer blocks all nodes
        # a stopped holder does not block the reader
        job, run = run_on(c, holder, name="big", command=["python3", "-c", BYTES % 1000])
        holder.wait_final(job)
        holder.process.send_signal(signal.SIGSTOP)
        answer = ask(other, run)
        assert answer.status == 200 and "n0" in answer.headers["X-Jobsched-Output-Note"], answer.headers
        assert len(answer.read()) == 8192
        holder.process.send_signal(signal.SIGCONT)
        wait_until("the complete output is available again", 30, lambda: len(read_output(other, run)[0]) > 8192)
        wait_no_relay_rows(c)


for what in (same_bytes, followed_live, holder_killed, reader_gone):
    for postgres in (False, True):
        def run(what=what, postgres=postgres):
            return what(postgres)
        run.__name__ = "%s_%s" % ({same_bytes: "every_node_shows_the_same_bytes", followed_live: "output_is_followed_live_through_other_nodes",
            holder_killed: "the_node_that_holds_unavailable_output_is_named", reader_gone: "readers_that_disconnect_leave_no_relay_rows"}[what],
            "postgresql" if postgres else "sqlite")
        case(run)


main()
