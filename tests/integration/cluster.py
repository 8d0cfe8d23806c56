# SPDX-License-Identifier: Apache-2.0
# Several nodes on one store: leader changes, killed, stopped and leaving nodes. No slot is lost or run twice.
import contextlib
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, instant, main, wait_until
from nodes import LEASE, Cluster, each_slot_once


def tick_through(postgres, strike):
    """Runs six jobs every second while 'strike' happens, then checks that every slot ran once."""
    with Cluster(3, postgres) as c:
        asked = c.others(c.leader())[0]
        jobs = [(c.add(asked, "tick%d" % i, 0, schedule=["every 1s"], catchup="all", overlap="queue:100"), "tick%d" % i)
                for i in range(6)]
        wait_until("20 ledger lines are written", 30, lambda: len(c.lines()) > 20)
        took = strike(c, asked)
        time.sleep(2)
        now = time.time()
        wait_until("all jobs run newer slots", 60, lambda: all(max(s for s, _, _ in c.bodies(n)) / 1000 > now for _, n in jobs))
        for job, name in jobs:
            each_slot_once(c, asked, job, name, 3)
        return took


def kill_leader(c, asked):
    leader = c.leader()
    began = time.monotonic()
    leader.kill()
    wait_until("another node leads", 60, lambda: c.leader(asked) not in (None, leader), 0.05)
    return "another node led after %.1f s" % (time.monotonic() - began)


def stop_leader(c, asked):
    leader = c.leader()
    began = time.monotonic()
    leader.stop()
    wait_until("another node leads", 60, lambda: c.leader(asked) not in (None, leader), 0.05)
    took = time.monotonic() - began
    leader.start()  # its runs that are still running continue
    return "another node led after %.1f s" % took


def pause_leader(c, asked):
    leader = c.leader()
    leader.process.send_signal(signal.SIGSTOP)
    wait_until("another node leads", 60, lambda: c.leader(asked) not in (None, leader), 0.05)
    time.sleep(LEASE)
    if leader.process.poll() is None:
        leader.process.send_signal(signal.SIGCONT)
    else:
        leader.start()  # the stopped node held the SQLite lock, so another node killed it
    wait_until("the former leader has segments again", 60, lambda: c.segments(leader))


def kill_all(c, asked):
    for d in c.nodes:
        d.kill()
    time.sleep(2)
    for d in c.nodes:
        d.start()


for postgres, strike in ((False, kill_leader), (False, stop_leader), (False, pause_leader), (False, kill_all),
                         (True, kill_leader), (True, pause_leader)):
    def run(postgres=postgres, strike=strike):
        return tick_through(postgres, strike)
    run.__name__ = "no_slot_is_lost_or_doubled_by_%s_on_%s" % (strike.__name__, "postgresql" if postgres else "sqlite")
    case(run)


def dead_node(postgres):
    with Cluster(3, postgres) as c:
        follower = c.others(c.leader())[0]
        asked = c.others(follower)[0]
        # the run starts on the follower, because all other nodes are drained
        for d in c.others(follower):
            asked.api().post("/v1/nodes/n%d/drain" % c.nodes.index(d))
        long = c.add(asked, "long", 6)
        wait_until("the job runs on the follower", 30, lambda: c.node_of(long, asked) is follower)
        for d in c.others(follower):
            asked.api().post("/v1/nodes/n%d/undrain" % c.nodes.index(d))
        time.sleep(LEASE)  # the spawner has received the deadline of the run lease
        killed = time.monotonic()
        follower.kill()
        run = wait_until("the second attempt is running", 60, lambda: [r for r in asked.runs(long) if r["state"] == "running" and r["attempt"] == 2])
        after = time.monotonic() - killed
        assert after > LEASE - LEASE / 3 - 1, "the second attempt started before the lease had ended"
        run = wait_until("the run has succeeded", 60, lambda: [r for r in asked.runs(long) if r["state"] == "succeeded"])[0]
        told = asked.jobctl("doctor", "cluster", check=False).stdout
        assert "node 'n%d' was given up and has not joined again" % c.nodes.index(follower) in told, told
        assert not c.bodies("long", "O"), "the first attempt was still running"
        assert len(c.bodies("long")) == 2 and len(c.bodies("long", "E")) == 1, c.lines()
        follower.start()
        attempts = asked.api().get("/v1/runs/%d" % run["id"])["attempts"]
        assert [a["outcome"] for a in attempts][1] == "succeeded", attempts
        return "second attempt after %.1f s" % after


@case
def a_single_node_shortens_its_lease_when_a_second_node_joins():
    c = Cluster(2)
    with contextlib.ExitStack() as stack:
        stack.push(c.__exit__)
        first, second = c.nodes
        left = lambda: next(v["lease_remains"] for v in first.api().get("/v1/nodes")["nodes"] if v["name"] == "n0")
        first.start()
        wait_until("the single node has a long lease", 30, lambda: left() > 2 * LEASE)
        second.start()
        wait_until("the lease is short", 5, lambda: left() <= LEASE)


@case
def a_run_of_a_killed_node_restarts_on_another_after_the_lease_without_overlap_sqlite():
    return dead_node(False)


@case
def a_run_of_a_killed_node_restarts_on_another_after_the_lease_without_overlap_postgresql():
    return dead_node(True)


@case
def a_single_node_keeps_its_run_when_it_was_stopped_beyond_the_lease():
    with Cluster(1) as c:
        d = c.nodes[0]
        job = c.add(d, "alone", 2 * LEASE)
        wait_until("the job runs", 30, lambda: c.bodies("alone"))
        d.process.send_signal(signal.SIGSTOP)
        time.sleep(2 * LEASE)
        d.process.send_signal(signal.SIGCONT)
        assert d.wait_final(job, 60)["state"] == "succeeded"
        assert len(c.bodies("alone")) == 1


@case
def a_restarted_node_continues_its_runs_within_the_run_lease():
    with Cluster(2, config="run-lease = 60\n") as c:
        asked = c.nodes[1]
        asked.api().post("/v1/nodes/n1/drain")
        job = c.add(asked, "stays", 3 * LEASE)
        wait_until("the job runs on n0", 30, lambda: c.node_of(job, asked) is c.nodes[0])
        time.sleep(LEASE)
        c.nodes[0].stop()
        time.sleep(LEASE + 1)
        c.nodes[0].start()
        assert asked.wait_final(job, 60)["state"] == "succeeded"
        assert len(c.bodies("stays")) == 1, c.lines()


def held_on(c, node, asked):
    """Adds a job that runs on this node until the file 'hold' is removed. Returns the job and the path of the file."""
    hold = os.path.join(c.dir, "hold")
    open(hold, "w").close()
    for d in c.others(node):
        asked.api().post("/v1/nodes/n%d/drain" % c.nodes.index(d))
    job = c.add(asked, "held", 0, hold)
    wait_until("the job runs on the node", 30, lambda: c.node_of(job, asked) is node)
    return job, hold


@case
def a_node_that_is_restarted_repeatedly_keeps_its_run():
    with Cluster(2, config="run-lease = 60\n") as c:
        leaving, asked = c.nodes
        job, hold = held_on(c, leaving, asked)
        for part in (0.3, 0.6, 0.9):  # fractions of the renewal interval
            time.sleep(LEASE + part * LEASE / 3)
            assert leaving.stop() == 0
            leaving.start()
        os.unlink(hold)
        assert asked.wait_final(job)["state"] == "succeeded"
        assert len(c.bodies("held")) == 1, c.lines()


@case
def a_run_of_a_stopped_node_restarts_on_another_after_the_run_lease_without_overlap():
    with Cluster(2, config="run-lease = %d\n" % (2 * LEASE)) as c:
        leaving, asked = c.nodes
        job, hold = held_on(c, leaving, asked)
        assert leaving.stop() == 0
        asked.api().post("/v1/nodes/n1/undrain")
        wait_until("the job runs on the other node", 60, lambda: len(c.bodies("held")) == 2)
        os.unlink(hold)
        run = asked.wait_final(job, 60)
        assert run["state"] == "succeeded" and run["lost"] == 1, run
        assert not c.bodies("held", "O"), c.lines()


@case
def a_run_that_ends_while_its_node_stops_is_recorded():
    with Cluster(2) as c:
        leaving, asked = c.nodes
        job, hold = held_on(c, leaving, asked)
        leaving.process.send_signal(signal.SIGTERM)
        wait_until("the node is stopping", 30, lambda: "stopping on signal" in leaving.said())
        os.unlink(hold)
        assert leaving.ended() == 0
        run = asked.runs(job)[0]
        assert run["state"] == "succeeded", run


@case
def instances_of_one_user_share_the_store_in_the_state_directory():
    with Daemon("lease = %d\nrun-lease = %d\n" % (LEASE, LEASE)) as d:
        d.start()
        other = Daemon("lease = %d\nrun-lease = %d\n" % (LEASE, LEASE), state=d.state_home)
        with other:
            other.env.update(XDG_RUNTIME_DIR=d.runtime)
            other.socket = os.path.join(d.runtime, "jobsched-b", "jobsched.sock")
            other.command = lambda: [*Daemon.command(other), "--instance", "b"]
            other.start()
            wait_until("both instances share the segments", 30, lambda: [v["segments"] for v in d.api().get("/v1/nodes")["nodes"]] == [32, 32])
            names = [v["name"] for v in other.api().get("/v1/nodes")["nodes"]]
            assert names[1] == names[0] + "-b", names
            other.stop()


def through_any_node(postgres):
    with Cluster(2, postgres) as c:
        here, there = c.nodes
        there.api().post("/v1/nodes/n1/drain")
        late = []
        for i in range(10):
            job = c.add(there, "now%d" % i, 0)
            run = there.wait_final(job)
            late.append(instant(run["started_at"]) - instant(run["created_at"]))
        words = there.add(command=["sh", "-c", "seq 1 3000; echo the end"])["id"]
        run = there.wait_final(words)
        shown = there.jobctl("log", str(words)).stdout
        assert shown.startswith("1\n2\n") and shown.endswith("2999\n3000\nthe end\n"), (len(shown), shown[-40:])
        job = c.add(there, "endless", 600)
        wait_until("the job runs on n0", 30, lambda: c.node_of(job, there) is here)
        run = there.runs(job)[0]["id"]
        there.api().post("/v1/runs/%d/cancel" % run)
        assert there.wait_final(job)["state"] == "cancelled"
        return "median %.0f ms from the submission on one node to the start on another" % (sorted(late)[5] * 1000)


@case
def a_job_submitted_to_one_node_starts_and_is_cancelled_on_another_sqlite():
    return through_any_node(False)


@case
def a_job_submitted_to_one_node_starts_and_is_cancelled_on_another_postgresql():
    return through_any_node(True)


main()
