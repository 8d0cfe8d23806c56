# SPDX-License-Identifier: Apache-2.0
# The state of a cluster as jobctl and the API show it: leader, stopped threads, clock offsets, labels of waiting jobs.
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Skip, case, instant, main, need_program, sanitized, thread_stopped, wait_until
from nodes import LEASE, Cluster

AHEAD = 3  # seconds
# A preloaded library that moves CLOCK_REALTIME of one process and its children.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *t)
{
	int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(which, t);

	if (which == CLOCK_REALTIME)
		t->tv_sec += %d;
	return r;
}
""" % AHEAD


def why(d, job):
    return d.api().get("/v1/jobs/%s/why" % job)["now"]


def code_of(d, *words):
    done = d.jobctl(*words, check=False)
    return done.returncode, done.stdout + done.stderr


@case
def node_commands_take_effect_or_report_why_not():
    with Cluster(2) as c:
        leader = c.leader()
        other = c.others(leader)[0]
        first, second = ("n%d" % c.nodes.index(d) for d in (leader, other))
        for words, code, said in ((("node", "drain", "nowhere"), 3, "no node 'nowhere'; see 'jobctl nodes'"),
                                  (("node", "drain", "no/where"), 2, "not the name of a node"),
                                  (("node", "resign", second), 6, "node '%s' does not lead" % second),
                                  (("node", "undrain", second), 0, "was not drained"),
                                  (("node", "drain", second), 0, "starts no new runs"),
                                  (("node", "drain", second), 0, "was already drained"),
                                  (("node", "undrain", second), 0, "starts runs again")):
            got = code_of(other, *words)
            assert got[0] == code and said in got[1], (words, got)
        c.add(other, "tick", 0, schedule=["every 1s"], overlap="queue:100", catchup="all")
        wait_until("two slots have run", 60, lambda: len(c.bodies("tick")) > 1)
        before = leader.api().get("/v1/status")["cluster"]["term"]
        assert code_of(other, "node", "resign", first)[0] == 0
        wait_until("the other node leads", 60, lambda: c.leader(leader) is other)
        wait_until("six slots have run", 60, lambda: len(c.bodies("tick")) > 5)
        slots = [s for s, _, _ in c.bodies("tick")]
        assert slots == list(range(slots[0], slots[0] + 1000 * len(slots), 1000)), slots
        assert {"name", "state", "leads", "segments", "lease_remains", "clock_offset", "labels", "may_lead"} <= set(
            json.loads(other.jobctl("nodes", "--json").stdout)[0])
        shown = {}

        def new_leader_is_shown():  # a slow machine can cause further terms between the commands
            cluster = other.api().get("/v1/status")["cluster"]
            table = other.jobctl("nodes").stdout.splitlines()
            status = leader.jobctl("status").stdout
            shown.update(cluster=cluster, table=table, status=status)
            return (cluster["leader"] == second and cluster["term"] > before and
                    table[0].split()[:3] == ["NODE", "STATE", "ROLE"] and
                    "leader, term %d" % cluster["term"] in table[1 + c.nodes.index(other)] and
                    "cluster %s leads in term %d, its lease lasts " % (second, cluster["term"]) in status and "the lease is " in status)
        try:
            wait_until("the new leader and its term are shown", 30, new_leader_is_shown)
        except AssertionError as e:
            raise AssertionError("%s: %s" % (e, shown)) from e


@case
def why_lists_the_available_labels_or_the_node_to_undrain():
    with Cluster(2, config="node-labels = zone=a,disk=fast\n") as c:
        d = c.nodes[0]
        job = c.add(d, "picky", 0, node_labels=["zone=b"])
        now = wait_until("the job waits for a node", 10, lambda: why(d, job)["code"] == "no_node" and why(d, job))
        assert "no available node has zone=b; there are zone=a on n0, disk=fast on n0, zone=a on n1" in now["message"], now
        assert now["command"] == "jobctl nodes", now
        shown = d.jobctl("list").stdout
        assert "no available node" in shown or "no_node" in d.jobctl("list", "--json").stdout, shown
        d.api().post("/v1/nodes/n0/drain")
        d.api().post("/v1/nodes/n1/drain")
        plain = c.add(d, "plain", 0)
        fast = c.add(d, "fast", 0, node_labels=["disk=fast"])
        assert why(d, plain)["code"] == "drained" and "every node is drained" in why(d, plain)["message"], why(d, plain)
        assert "every node with disk=fast is drained" in why(d, fast)["message"], why(d, fast)
        words = why(d, fast)["command"].split()
        assert words[:3] == ["jobctl", "node", "undrain"], words
        d.jobctl(*words[1:])
        assert d.wait_final(fast)["state"] == "succeeded" and d.wait_final(plain)["state"] == "succeeded"


@case
def a_node_with_may_lead_no_never_leads_and_the_missing_leader_is_shown():
    with Cluster(2) as c:
        for d in c.nodes:
            d.stop()
        with open(c.nodes[1].config, "a") as f:
            f.write("may-lead = no\n")
        for d in c.nodes:
            d.start()
        barred = c.nodes[1]
        wait_until("both nodes have segments", 30, lambda: c.segments(barred) == 32)
        assert "never leads" in barred.jobctl("nodes").stdout
        job = c.add(barred, "tick", 0, schedule=["every 1s"], catchup="all")
        c.nodes[0].kill()
        wait_until("there is no leader", 30, lambda: c.leader(barred) is None)
        time.sleep(LEASE)
        assert c.leader(barred) is None
        assert "no leader since term" in barred.jobctl("status").stdout
        # at least one of the jobs is in a segment that no node plans
        more = [c.add(barred, "more%d" % i, 0, schedule=["every 1s"]) for i in range(12)]
        wait_until("why names the missing leader", 30, lambda: any(why(barred, j)["code"] == "unplanned" and "no node leads" in why(barred, j)["message"]
                                                  for j in [job, *more]), 0.2)


@case
def an_idle_leader_that_keeps_its_lease_causes_an_alarm_on_other_nodes():
    with Cluster(2, postgres=True) as c:
        leader = c.leader()
        other = c.others(leader)[0]
        name = "n%d" % c.nodes.index(leader)
        jobs = [c.add(other, "tick%d" % i, 0, schedule=["every 1s"]) for i in range(20)]
        with thread_stopped(leader.process.pid, "writer"):
            def told():
                return {e["detail"] for e in other.api().get("/v1/events?what=node.alarm")["events"] if e["object"] == name}
            wait_until("the leader's missing work causes an alarm", 60, lambda: any("has not done its work" in t for t in told()), 0.5)
            wait_until("the unplanned segments cause an alarm", 60, lambda: any("does not plan it" in t for t in told()), 0.5)
            assert "see 'jobctl nodes'" in other.said()
            assert any(why(other, j)["code"] == "unplanned" for j in jobs)
            assert other.api().get("/v1/status")["cluster"]["overdue"] > 10
        return "; ".join(sorted(told()))


@case
def a_wrong_clock_is_shown_and_slots_follow_the_clock_of_the_store():
    if sanitized():
        raise Skip("a sanitizer library must be loaded first")
    need_program("cc")
    with tempfile.TemporaryDirectory(prefix="jobsched-clock.") as made:
        library = os.path.join(made, "clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-", "-ldl"], input=CLOCK, text=True, check=True)
        with Cluster(2, postgres=True, before=[(), ("env", "LD_PRELOAD=" + library)]) as c:
            good, wrong = c.nodes
            offset = lambda: {v["name"]: v["clock_offset"] for v in good.api().get("/v1/nodes")["nodes"]}
            wait_until("the clock offset is measured", 30, lambda: offset()["n1"] < -AHEAD + 0.5)
            assert "ms ahead of the store's" in wrong.said(), wrong.said()
            # each renewal measures again; one that took long is inaccurate
            wait_until("the other clock is right", 60, lambda: abs(offset()["n0"]) < 0.5)
            wait_until("'status' shows the offset", 60, lambda: "clock   %.1f s ahead of the clock of the store" % AHEAD
                       in wrong.jobctl("status").stdout)
            wait_until("'status' of the other node shows none", 60, lambda: "ahead of" not in good.jobctl("status").stdout)
            good.api().post("/v1/nodes/n0/drain")  # the node with the wrong clock runs all jobs
            c.add(good, "tick", 0, schedule=["every 1s"])
            wait_until("three slots have run", 30, lambda: len(c.bodies("tick")) > 3)
            with open("/proc/uptime") as f:
                boot = time.time() - float(f.read().split()[0])
            late = [boot + up - slot / 1000 for slot, _, up in c.bodies("tick")]
            assert all(-0.1 < t < AHEAD - 0.5 for t in late), late
            run = good.wait_final(good.add(command=["sleep", "0.1"])["id"])
            assert run["created_at"] <= run["started_at"] < run["ended_at"], run
            assert instant(run["ended_at"]) - instant(run["created_at"]) < AHEAD - 0.5, "the history uses the wrong clock: %s" % run
            return "late by %s s" % ", ".join("%.2f" % t for t in late)


main()
