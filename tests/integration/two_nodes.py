# SPDX-License-Identifier: Apache-2.0
# Runs whose attempts are on different nodes: their state moves with them; results, chains and gates work across nodes.
import contextlib
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Skip, case, main, sanitized, wait_until
from nodes import Cluster

WAIT = 120 if sanitized() else 60


def shell(script, *args):
    return ["sh", "-c", script, "sh"] + list(args)


class Pair(Cluster):
    """Two nodes. One of them is drained at a time, so that the test decides where the next attempt runs."""

    def __init__(self, postgres, config=""):
        super().__init__(2, postgres, config)

    def only(self, d):
        """Starts runs on this node only."""
        for x in [d] + self.others(d):
            verb = "undrain" if x is d else "drain"
            d.api().post("/v1/nodes/n%d/%s" % (self.nodes.index(x), verb))

    def rows(self, query):
        if self.server:
            return self.server.sql(query.replace("FROM ", "FROM jobsched."))
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % self.store, uri=True)) as store:
            return [[str(v) for v in row] for row in store.execute(query).fetchall()]

    def path(self, name):
        return os.path.join(self.dir, name)

    def touch(self, name):
        open(self.path(name), "w").close()

    def attempts(self, run):
        return self.nodes[0].api().get("/v1/runs/%d" % run)["attempts"]

    def attempt_of(self, job, n):
        """The running run of the job in its n-th attempt."""
        return wait_until("attempt %d runs" % n, WAIT, lambda: [
            r for r in self.nodes[0].runs(job) if r["state"] == "running" and r["attempt"] == n and os.path.exists(self.path("begun%d" % n))])[0]

    def ended(self, job):
        run = wait_until("the run has ended", WAIT, lambda: [r for r in self.nodes[0].runs(job) if r["ended_at"]])[0]
        return run, [a["node_name"] for a in self.attempts(run["id"])]


# Each attempt reports what it found, calls its step, and ends when the test lets it.
STATE = """cd "$JOBSCHED_STATE" || exit 9
n=$JOBSCHED_ATTEMPT; find . | LC_ALL=C sort | tr '\\n' ' ' >"$1/found$n"; cat log >>"$1/found$n" 2>/dev/null
echo "$n" >>log
%s
: >"$1/begun$n"; while [ ! -e "$1/go$n" ]; do sleep 0.05; done
[ $n = 4 ]"""


def found(c, n):
    with open(c.path("found%d" % n)) as f:
        return f.read()


def state_follows(postgres):
    with Pair(postgres) as c:
        first, second = c.nodes
        c.only(first)
        job = first.add(checkpoint="yes", state_size=1 << 20, retries=9, backoff="fixed:10ms", command=shell(STATE % (
            '[ $n = 1 ] && { mkdir -p a/b; echo deep >a/b/c; chmod 600 a/b/c; mkdir -m 500 shut; ln -s a/b/c here; ln -s /etc/passwd out; '
            'mkfifo pipe; head -c 300000 /dev/urandom >big; cksum big >sum; }\n'
            '[ $n = 2 ] && { [ "$(stat -c %a a/b/c)" = 600 ] && [ "$(cat here)" = deep ] && cksum big | cmp - sum && rm -r a && echo 2 >two; }'), c.dir))["id"]
        c.attempt_of(job, 1)
        c.only(second)
        c.touch("go1")
        run = c.attempt_of(job, 2)  # of the second node
        assert found(c, 2) == ". ./a ./a/b ./a/b/c ./big ./here ./log ./shut ./sum 1\n", found(c, 2)
        # the first node still has the directory of attempt 1, which is replaced by that of attempt 2
        c.only(first)
        c.touch("go2")
        c.attempt_of(job, 3)
        assert found(c, 3) == ". ./big ./here ./log ./shut ./sum ./two 1\n2\n", found(c, 3)
        # the same node continues in its own directory, with what the archive leaves out
        c.touch("go3")
        c.attempt_of(job, 4)
        assert found(c, 4).endswith("1\n2\n3\n"), found(c, 4)
        assert len(c.rows("SELECT DISTINCT fence FROM run_states")) == 1
        c.touch("go4")
        run, nodes = c.ended(job)
        assert run["state"] == "succeeded" and nodes == ["n0", "n1", "n0", "n0"], (run, nodes)
        wait_until("the stored state is deleted", WAIT, lambda: not c.rows("SELECT run FROM run_states"))
        assert not [a["error"] for a in c.attempts(run["id"]) if a["error"]], c.attempts(run["id"])
        first.jobctl("db", "check")  # the bytes of the owner are counted


def state_that_is_too_large_stays(postgres):
    with Pair(postgres) as c:
        first, second = c.nodes
        c.only(first)
        job = first.add(checkpoint="yes", state_size=1 << 20, retries=9, backoff="fixed:10ms", command=shell(STATE % (
            '[ $n = 2 ] && head -c 2000000 /dev/zero >big'), c.dir))["id"]
        c.attempt_of(job, 1)
        c.only(second)
        c.touch("go1")
        c.attempt_of(job, 2)
        c.only(first)
        c.touch("go2")
        # attempt 2 has stored nothing, so attempt 3 gets what attempt 1 has stored
        run = c.attempt_of(job, 3)
        assert found(c, 3) == ". ./log 1\n", found(c, 3)
        c.touch("go3")
        c.touch("go4")
        run, nodes = c.ended(job)
        assert run["state"] == "succeeded" and nodes[:3] == ["n0", "n1", "n0"], (run, nodes)
        said = [a["error"] for a in c.attempts(run["id"])]
        assert "more than 1048576 bytes" in said[1] and "stays on this node" in said[1] and not said[0], said


def a_daemon_dies_while_it_stores_a_state(postgres):
    with open(os.path.join(os.environ.get("top_builddir", "build"), "config.h")) as f:
        if "#define JOBSCHED_FAILPOINTS 1" not in f.read():
            raise Skip("needs --enable-failpoints")
    with Pair(postgres, "run-lease = 120\n") as c:  # the run is not given up meanwhile
        first, second = c.nodes
        c.only(first)
        # three parts; the daemon dies before the second
        job = second.add(checkpoint="yes", state_size=1 << 20, retries=9, backoff="fixed:10ms", command=shell(
            STATE % '[ $n = 1 ] && head -c 500000 /dev/urandom >big && cksum big >sum', c.dir))["id"]
        c.attempt_of(job, 1)
        first.kill()
        marks = c.path("failpoints")
        os.mkdir(marks)
        first.start(env={"JOBSCHED_FAILPOINTS": "state.pre_part=kill@2", "JOBSCHED_FAILPOINTS_DIR": marks})
        c.only(second)
        c.touch("go1")
        first.ended(WAIT)
        assert os.listdir(marks) and c.rows("SELECT count(*) FROM run_states WHERE last = 1") == [["0"]]
        first.start()
        run = c.attempt_of(job, 2)
        assert found(c, 2) == ". ./big ./log ./sum 1\n", found(c, 2)
        c.touch("go2")
        c.touch("go3")
        c.touch("go4")
        run, nodes = c.ended(job)
        assert run["state"] == "succeeded" and run["lost"] == 0 and nodes[:2] == ["n0", "n1"], (run, nodes)


def state_of_a_killed_node(postgres):
    with Pair(postgres) as c:
        first, second = c.nodes
        c.only(first)
        job = second.add(checkpoint="yes", state_size=1 << 20, retries=9, backoff="fixed:10ms", on_lost="rerun", command=shell(STATE % "", c.dir))["id"]
        c.attempt_of(job, 1)
        c.only(second)
        c.touch("go1")
        c.attempt_of(job, 2)
        first.api().post("/v1/nodes/n0/undrain")
        # the attempt has changed its directory, and its node dies with the spawner
        os.kill(second.spawner(), 9)
        second.kill()
        c.attempt_of(job, 3)
        assert found(c, 3) == ". ./log 1\n", found(c, 3)
        c.touch("go3")
        c.touch("go4")
        run, nodes = c.ended(job)
        assert run["state"] == "succeeded" and nodes[0] == "n0" and nodes[2] == "n0", (run, nodes)


def results_and_chains(postgres):
    with Pair(postgres) as c:
        first, second = c.nodes
        c.only(first)
        parent = first.add(name="parent", schedule="manual", results="yes", retries=3, backoff="fixed:10ms", params={"color": "blue"}, command=shell(
            'n=$JOBSCHED_ATTEMPT; echo "rows=$n" >>"$JOBSCHED_RESULT"; : >"$1/begun$n"; while [ ! -e "$1/go$n" ]; do sleep 0.05; done; [ $n = 2 ]',
            c.dir))["id"]
        child = first.add(name="child", after="parent", results="yes", command=shell(
            'echo "$JOBSCHED_PARENT_STATE $JOBSCHED_PARENT_PARAM_COLOR $JOBSCHED_PARENT_RESULT_ROWS $JOBSCHED_NODE" >>"$1/child"; '
            'echo "twice=$((JOBSCHED_PARENT_RESULT_ROWS * 2))" >>"$JOBSCHED_RESULT"', c.dir))["id"]
        slot = first.api().post("/v1/jobs/parent/run", {})["slot"]
        c.attempt_of(parent, 1)
        c.only(second)
        c.touch("go1")
        c.attempt_of(parent, 2)
        c.only(first)  # the child runs there
        c.touch("go2")
        run, nodes = c.ended(parent)
        assert run["results"] == {"rows": "2"} and nodes == ["n0", "n1"], (run, nodes)
        run, nodes = c.ended(child)
        assert run["results"] == {"twice": "4"} and nodes == ["n0"] and run["slot"] == slot, (run, nodes)
        with open(c.path("child")) as f:
            assert f.read() == "succeeded blue 2 n0\n"
        assert len(second.runs(child)) == 1
        assert [r["id"] for r in second.api().pages("/v1/runs?result=twice%3D4", "runs")] == [run["id"]]


def gates(postgres):
    with Pair(postgres) as c:
        first, second = c.nodes
        c.only(first)
        job = first.add(gate='echo "$JOBSCHED_NODE" >>%s; [ $JOBSCHED_NODE = n1 ] || exit 75' % c.path("gate"), command=shell(
            'echo "$JOBSCHED_NODE" >>"$1/ran"', c.dir))["id"]
        wait_until("the gate has delayed the run", WAIT, lambda: os.path.exists(c.path("gate")) and first.runs(job)[0]["state"] == "queued")
        c.only(second)
        run, nodes = c.ended(job)
        assert run["state"] == "succeeded", run
        with open(c.path("ran")) as f:
            assert f.read() == "n1\n"
        with open(c.path("gate")) as f:
            assert set(f.read().split()) == {"n0", "n1"}


for postgres in (False, True):
    for check, name in ((state_follows, "the_state_of_a_run_follows_it_to_another_node_and_back"),
                        (state_that_is_too_large_stays, "a_state_that_is_too_large_stays_on_its_node_and_the_attempt_says_so"),
                        (a_daemon_dies_while_it_stores_a_state, "a_daemon_that_dies_while_it_stores_a_state_stores_it_after_its_restart"),
                        (state_of_a_killed_node, "after_the_death_of_a_node_the_last_stored_state_is_used"),
                        (results_and_chains, "a_parent_with_attempts_on_two_nodes_gives_its_results_to_one_run_of_its_child"),
                        (gates, "a_run_that_the_gate_of_one_node_delays_starts_once_on_another")):
        def run(check=check, postgres=postgres):
            return check(postgres)
        run.__name__ = name + ("_postgresql" if postgres else "_sqlite")
        case(run)

main()
