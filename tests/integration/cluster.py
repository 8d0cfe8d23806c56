# SPDX-License-Identifier: Apache-2.0
# Several nodes on one store: who leads, what becomes of nodes that die or stand still, and that nothing runs twice.
import contextlib
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, instant, main, wait_until
from nodes import LEASE, Cluster, each_slot_once


def tick_through(postgres, strike):
    """A job each second while 'strike' happens; then all of it is looked at."""
    with Cluster(3, postgres) as c:
        asked = c.others(c.leader())[0]
        jobs = [(c.add(asked, "tick%d" % i, 0, schedule=["every 1s"], catchup="all", overlap="queue:100"), "tick%d" % i)
                for i in range(6)]
        wait_until("some have run", 30, lambda: len(c.lines()) > 20)
        took = strike(c, asked)
        time.sleep(2)
        now = time.time()
        wait_until("it goes on", 60, lambda: all(max(s for s, _, _ in c.bodies(n)) / 1000 > now for _, n in jobs))
        for job, name in jobs:
            each_slot_once(c, asked, job, name, 3)
        return took


def kill_leader(c, asked):
    leader = c.leader()
    began = time.monotonic()
    leader.kill()
    wait_until("another leads", 60, lambda: c.leader(asked) not in (None, leader), 0.05)
    return "another led after %.1f s" % (time.monotonic() - began)


def stop_leader_in_peace(c, asked):
    leader = c.leader()
    began = time.monotonic()
    leader.stop()
    wait_until("another leads", 60, lambda: c.leader(asked) not in (None, leader), 0.05)
    took = time.monotonic() - began
    leader.start()  # what it left running is waited for
    return "another led after %.1f s" % took


def pause_leader(c, asked):
    leader = c.leader()
    leader.process.send_signal(signal.SIGSTOP)
    wait_until("another leads", 60, lambda: c.leader(asked) not in (None, leader), 0.05)
    time.sleep(LEASE)
    if leader.process.poll() is None:
        leader.process.send_signal(signal.SIGCONT)
    else:
        leader.start()  # it held the file, and was ended for that
    wait_until("it is one of them again", 60, lambda: c.segments(leader))


def kill_all(c, asked):
    for d in c.nodes:
        d.kill()
    time.sleep(2)
    for d in c.nodes:
        d.start()


for postgres, strike in ((False, kill_leader), (False, stop_leader_in_peace), (False, pause_leader), (False, kill_all),
                         (True, kill_leader), (True, pause_leader)):
    def run(postgres=postgres, strike=strike):
        return tick_through(postgres, strike)
    run.__name__ = "no_slot_is_lost_or_doubled_by_%s_on_%s" % (strike.__name__, "postgresql" if postgres else "sqlite")
    case(run)


def dead_node(postgres):
    with Cluster(3, postgres) as c:
        follower = c.others(c.leader())[0]
        asked = c.others(follower)[0]
        # run where we want it: the only one that is not drained
        for d in c.others(follower):
            asked.api().post("/v1/nodes/n%d/drain" % c.nodes.index(d))
        long = c.add(asked, "long", 6)
        wait_until("it runs", 30, lambda: c.node_of(long, asked) is follower)
        for d in c.others(follower):
            asked.api().post("/v1/nodes/n%d/undrain" % c.nodes.index(d))
        time.sleep(LEASE)  # its spawner has a deadline by then
        killed = time.monotonic()
        follower.kill()
        run = wait_until("it is run elsewhere", 60, lambda: [r for r in asked.runs(long) if r["state"] == "running" and r["attempt"] == 2])
        after = time.monotonic() - killed
        assert after > LEASE - LEASE / 3 - 1, "given up before the lease had ended"
        run = wait_until("it is over", 60, lambda: [r for r in asked.runs(long) if r["state"] == "succeeded"])[0]
        assert not c.bodies("long", "O"), "the first one was there still"
        assert len(c.bodies("long")) == 2 and len(c.bodies("long", "E")) == 1, c.lines()
        follower.start()
        attempts = asked.api().get("/v1/runs/%d" % run["id"])["attempts"]
        assert [a["outcome"] for a in attempts][1] == "succeeded", attempts
        return "run again after %.1f s" % after


@case
def a_node_that_was_alone_has_a_short_lease_as_soon_as_another_comes():
    c = Cluster(2)
    with contextlib.ExitStack() as stack:
        stack.push(c.__exit__)
        first, second = c.nodes
        left = lambda: next(v["lease_remains"] for v in first.api().get("/v1/nodes")["nodes"] if v["name"] == "n0")
        first.start()
        wait_until("it knows that it is alone", 30, lambda: left() > 2 * LEASE)
        second.start()
        wait_until("its lease is short", 5, lambda: left() <= LEASE)


@case
def a_dead_nodes_run_is_run_elsewhere_after_its_lease_and_never_twice_at_a_time_sqlite():
    return dead_node(False)


@case
def a_dead_nodes_run_is_run_elsewhere_after_its_lease_and_never_twice_at_a_time_postgresql():
    return dead_node(True)


@case
def one_node_alone_never_ends_a_job_for_its_lease():
    with Cluster(1) as c:
        d = c.nodes[0]
        job = c.add(d, "alone", 2 * LEASE)
        wait_until("it runs", 30, lambda: c.bodies("alone"))
        d.process.send_signal(signal.SIGSTOP)
        time.sleep(2 * LEASE)
        d.process.send_signal(signal.SIGCONT)
        assert d.wait_final(job, 60)["state"] == "succeeded"
        assert len(c.bodies("alone")) == 1


@case
def a_node_that_left_in_peace_finds_its_jobs_again():
    with Cluster(2, config="run-lease = 60\n") as c:
        asked = c.nodes[1]
        asked.api().post("/v1/nodes/n1/drain")
        job = c.add(asked, "stays", 3 * LEASE)
        wait_until("it runs", 30, lambda: c.node_of(job, asked) is c.nodes[0])
        time.sleep(LEASE)
        c.nodes[0].stop()
        time.sleep(LEASE + 1)
        c.nodes[0].start()
        assert asked.wait_final(job, 60)["state"] == "succeeded"
        assert len(c.bodies("stays")) == 1, c.lines()


def held_on(c, node, asked):
    """A job that runs on this node until the file that is returned with it is gone."""
    hold = os.path.join(c.dir, "hold")
    open(hold, "w").close()
    for d in c.others(node):
        asked.api().post("/v1/nodes/n%d/drain" % c.nodes.index(d))
    job = c.add(asked, "held", 0, hold)
    wait_until("it runs", 30, lambda: c.node_of(job, asked) is node)
    return job, hold


@case
def a_node_that_takes_its_time_to_leave_keeps_its_lease_meanwhile():
    with Cluster(2, config="run-lease = 60\n") as c:
        leaving, asked = c.nodes
        job, hold = held_on(c, leaving, asked)
        for part in (0.3, 0.6, 0.9):  # of the time between two renewals, the last of which may be nearly over
            time.sleep(LEASE + part * LEASE / 3)
            assert leaving.stop() == 0
            leaving.start()
        os.unlink(hold)
        assert asked.wait_final(job)["state"] == "succeeded"
        assert len(c.bodies("held")) == 1, c.lines()


@case
def what_a_node_left_running_is_run_elsewhere_after_the_run_lease_and_not_twice_at_a_time():
    with Cluster(2, config="run-lease = %d\n" % (2 * LEASE)) as c:
        leaving, asked = c.nodes
        job, hold = held_on(c, leaving, asked)
        assert leaving.stop() == 0
        asked.api().post("/v1/nodes/n1/undrain")
        wait_until("it runs on the other node", 60, lambda: len(c.bodies("held")) == 2)
        os.unlink(hold)
        run = asked.wait_final(job, 60)
        assert run["state"] == "succeeded" and run["lost"] == 1, run
        assert not c.bodies("held", "O"), c.lines()


@case
def what_ends_while_its_node_leaves_is_known_to_the_others():
    with Cluster(2) as c:
        leaving, asked = c.nodes
        job, hold = held_on(c, leaving, asked)
        leaving.process.send_signal(signal.SIGTERM)
        wait_until("it leaves", 30, lambda: "stopping on signal" in leaving.said())
        os.unlink(hold)
        assert leaving.ended() == 0
        run = asked.runs(job)[0]
        assert run["state"] == "succeeded", run


@case
def instances_of_one_user_share_the_store_in_his_state_directory():
    with Daemon("lease = %d\nrun-lease = %d\n" % (LEASE, LEASE)) as d:
        d.start()
        other = Daemon("lease = %d\nrun-lease = %d\n" % (LEASE, LEASE), state=d.state_home)
        with other:
            other.env.update(XDG_RUNTIME_DIR=d.runtime)
            other.socket = os.path.join(d.runtime, "jobsched-b", "jobsched.sock")
            other.command = lambda: [*Daemon.command(other), "--instance", "b"]
            other.start()
            wait_until("they share the segments", 30, lambda: [v["segments"] for v in d.api().get("/v1/nodes")["nodes"]] == [32, 32])
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
        wait_until("it runs", 30, lambda: c.node_of(job, there) is here)
        run = there.runs(job)[0]["id"]
        there.api().post("/v1/runs/%d/cancel" % run)
        assert there.wait_final(job)["state"] == "cancelled"
        return "median %.0f ms from the submission on one node to the start on another" % (sorted(late)[5] * 1000)


@case
def a_job_given_to_one_node_starts_and_is_cancelled_on_another_sqlite():
    return through_any_node(False)


@case
def a_job_given_to_one_node_starts_and_is_cancelled_on_another_postgresql():
    return through_any_node(True)


main()
