# SPDX-License-Identifier: Apache-2.0
# The stream of server-sent events: starts and ends of runs on all nodes, and what a client gets that comes back.
import contextlib
import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Connection, Daemon, case, main, wait_until
from nodes import Cluster, run_on
from tcp_client import Stream


class Local:
    """The Unix socket of a daemon, as Stream expects a client."""
    port, token = 0, ""

    def __init__(self, daemon):
        self.daemon = daemon

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.daemon.socket)
        return s


def stream(daemon, last=None, path="/v1/stream"):
    return Stream(Local(daemon), path, {"Last-Event-ID": last} if last else {})


def runs_of(s, event, run):
    return [m for m in s.messages() if m[1] == event and m[2]["run"] == run]


def objects_of(s, event):
    """Reads what arrives within 0.2 s; the objects of all messages of this event so far."""
    s.sock.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        while data := s.sock.recv(65536):
            s.data += data
    return [m[2].get("object") for m in s.messages() if m[1] == event]


def behind(d):
    """The metric of that name."""
    connection = Connection(d.socket, 30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return float(re.search(r"^jobsched_cluster_events_behind_seconds\S* (\S+)", text, re.M).group(1))


def wait_run(s, event, run):
    def arrived():
        s.wait(event)
        return runs_of(s, event, run)
    return wait_until("%s of run %d" % (event, run), 60, arrived)[0]


def other_nodes(postgres):
    with Cluster(2, postgres) as c:
        here, there = c.nodes
        s = stream(here)
        s.wait("ready")
        job, run = run_on(c, there, name="long", command=["sh", "-c", "sleep 0.7; exit 3"])
        start, end = wait_run(s, "run.start", run), wait_run(s, "run.end", run)
        assert start[2]["job"] == end[2]["job"] == job and end[2]["object"] == "long", (start, end)
        assert end[2]["result"] == "failed" and end[2]["detail"] == "exit code 3", end
        # a run that ends at once is not seen while it runs
        there.api().post("/v1/nodes/n0/drain")
        short = there.add(name="short", command=["true"])
        there.wait_final(short["id"])
        wait_run(s, "run.end", short["run"])
        s.close()
        # what happened while the client was away follows
        later = there.add(name="later", command=["true"])
        there.wait_final(later["id"])
        s = stream(here, end[3])
        s.wait("ready")
        wait_run(s, "run.end", short["run"])
        wait_run(s, "run.end", later["run"])
        assert not [m for m in s.messages() if m[1] == "reset"], s.messages()
        assert not runs_of(s, "run.end", run), "it had been received"
        assert len(runs_of(s, "run.end", later["run"])) == 1, s.messages()
        s.close()


@case
def runs_of_other_nodes_are_streamed_sqlite():
    other_nodes(False)


@case
def runs_of_other_nodes_are_streamed_postgres():
    other_nodes(True)


@case
def a_stream_waits_for_a_transaction_that_may_still_add_events():
    with Cluster(2, True) as c:
        here, there = c.nodes
        s = stream(here)
        s.wait("ready")
        here.add(name="first", command=["true"], schedule=["0 3 * * *"])
        position = s.wait("job.add")[3]
        holder = subprocess.Popen(
            [*c.server.user, os.path.join(c.server.bin, "psql"), "-X", "-q", "-h", c.server.dir, "-U", "jobsched", "postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        holder.stdin.write("SET application_name = 'the holder'; BEGIN; SELECT pg_current_xact_id() IS NULL;\n")
        holder.stdin.flush()
        assert [line for line in iter(holder.stdout.readline, "(1 row)\n") if "f" in line]
        there.add(name="second", command=["true"], schedule=["0 3 * * *"])
        listed = here.api().get("/v1/events?what=job.add")["events"]
        assert listed[0]["object"] == "second", "lists are not delayed: %s" % listed
        why = wait_until("the status names the transaction", 60, lambda: here.api().get("/v1/status")["store"]["held"])
        assert "the holder" in why, why
        assert behind(here) >= 5
        assert objects_of(s, "job.add") == ["first"], s.messages()
        # a position beyond the frontier, here that of the list, continues at the frontier
        ahead = stream(here, "%d-1" % listed[0]["id"])
        ahead.wait("reset")
        assert objects_of(ahead, "job.add") == [], ahead.messages()
        holder.stdin.write("ROLLBACK;\n")
        holder.stdin.close()
        holder.wait(30)
        holder.stdout.close()
        wait_until("the event arrives", 60, lambda: objects_of(s, "job.add") == ["first", "second"])
        wait_until("the event arrives", 60, lambda: objects_of(ahead, "job.add") == ["second"])
        after = stream(there, position)
        wait_until("the event follows the position that another node gave", 60, lambda: objects_of(after, "job.add") == ["second"])
        wait_until("the status is clear", 60, lambda: here.api().get("/v1/status")["store"]["held"] is None)
        for client in (s, ahead, after):
            client.close()


@case
def a_client_that_comes_back_gets_the_runs_that_it_missed():
    with Daemon().start() as d:
        s = stream(d)
        ready = s.wait("ready")
        assert re.fullmatch(r"\d+-\d+", ready[3]), ready
        first = d.add(name="first", command=["true"])
        last = wait_run(s, "run.end", first["run"])
        s.close()
        ids = [d.add(name="n%d" % i, command=["true"]) for i in range(5)]
        for j in ids:
            d.wait_final(j["id"])
        s = stream(d, last[3])
        for j in ids:
            wait_run(s, "run.end", j["run"])
            assert len(runs_of(s, "run.end", j["run"])) == 1
        assert not [m for m in s.messages() if m[1] == "reset"] and not runs_of(s, "run.end", first["run"])
        s.close()
        # without the place of the runs, or with one of another daemon, the client is told to read everything again
        for old in (str(last[0]), "%d-%d" % (last[0], 5), "%d-%d" % (last[0], 2**62)):
            s = stream(d, old)
            s.wait("reset")
            s.close()


@case
def all_streams_share_one_reader():
    with Daemon("connections = 900\nconnections-per-uid = 400\n").start() as d:
        all_ = [stream(d) for _ in range(40)]
        for s in all_:
            s.wait("ready")
        for i in range(3):
            d.wait_final(d.add(name="n%d" % i, command=["true"])["id"])
        ends = [tuple(m[2]["run"] for m in s.messages() if m[1] == "run.end") for s in all_ if s.wait("run.end")]
        wait_until("all streams have the three ends", 60,
                   lambda: all(s.wait("run.end") and len([m for m in s.messages() if m[1] == "run.end"]) == 3 for s in all_))
        assert len(ends) == 40
        for s in all_:
            s.close()


@case
def streams_show_only_the_runs_of_the_filter():
    with Daemon().start() as d:
        wanted = d.add(name="wanted", schedule="@yearly", command=["true"])
        s = stream(d, path="/v1/events?follow=true&job=wanted")
        s.wait("ready")
        d.wait_final(d.add(name="other", command=["true"])["id"])
        run = d.api().post("/v1/jobs/%d/run" % wanted["id"])
        end = s.wait("run.end")
        assert end[2]["job"] == wanted["id"], (end, run)
        assert len([m for m in s.messages() if m[1] == "run.end"]) == 1
        s.close()


main()
