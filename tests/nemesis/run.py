# SPDX-License-Identifier: Apache-2.0
# Adds faults to nemesis.py and finds out which runs a fault beyond the run lease affects. Arguments as for nemesis.py.
import contextlib
import os
import random
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nemesis
from adapter import LEASE, RUN_LEASE

TRUST = LEASE / 5      # seconds of the run lease left when the spawner begins to end runs that must not overlap
SLACK = 0.2            # seconds between two polls, and between the clocks of engine and store
LOOK = 0.05
PATIENCE = 0.7         # seconds to wait for the right moment of a fault; below the limit of lateness
RECORDED = 1.0         # seconds; an end that is older than this at the fault must have been recorded
ALL = {"all-down", "down", "restart", "cut", "blackhole", "slow"}  # faults that affect every node
HARMLESS = {"kill-worker", "kill-one"}  # faults that end no lease


ALWAYS = 99
LONG, LONG_EACH = 2.2, 4  # length in run leases; one of LONG_EACH jobs is long
DENSE, LOADED = os.environ.get("DENSE") == "1", os.environ.get("LOADED") == "1"


class Watch:
    """
    One fault, and the runs that its nodes hold when their run lease ends without a renewal.

    Such a node is given up, and its runs start again on another node. Their first attempt may still run (its job may overlap,
    and its end will be stale), was ended by the spawner in time, or has ended without being recorded. Nothing else is
    excused: no runs of other nodes, of nodes whose lease was renewed in time, or that ended well before the fault.
    """

    def __init__(self, fault, names):
        self.fault, self.names = fault, names
        self.seen = {}            # node id: (end of its lease, runs that it holds) at the last poll
        self.victims = set()
        self.over = False

    def strike(self, node, now):
        until, held = self.seen[node]
        for run, keeps in held:
            if now > until - SLACK - (0 if keeps else TRUST):
                self.victims.add(run)

    def look(self, leases, held, now, after):
        """Updates the table from the state of the store between 'now' and 'after'."""
        open_now = set()
        renewed = set()
        for node, name, left in leases:
            if name not in self.names:
                continue
            open_now.add(node)
            self.seen[node] = (now + left, held.get(node, []))
            self.strike(node, now)
            if left > RUN_LEASE - LEASE / 2:
                renewed.add(name)
        for node in set(self.seen) - open_now:  # given up, or replaced by its next engine
            self.strike(node, after)
            del self.seen[node]
        self.over = self.fault["end"] > 0 and renewed == set(self.names)


class Driver(nemesis.Nemesis):
    """Adds faults, see the methods do_*. NAME-past lasts longer than the run lease."""

    def __init__(self, *given):
        super().__init__(*given)
        self.deck, self.watches, self.watched, self.lock = [], [], [], threading.Lock()
        # On a busy machine a lease can end without a fault of ours; this is recorded as a fault. It does not excuse a node
        # that was given up before its lease had ended.
        self.load = Watch(dict(kind="load", node=self.ad.nodes[0], t=time.time(), end=0, outage=True, victims=[]), set(self.ad.nodes))
        if LOADED:
            self.watches.append(self.load)
            self.watched.append(self.load)
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        self.ad.before_return = self.look

    # ---- affected runs ----

    def look(self):
        with self.lock:
            if not self.watches:
                return
            with contextlib.suppress(RuntimeError):  # the store is unavailable, so no node can act either
                before = time.time()
                leases, held = self.ad.leases(), self.ad.held()
                after = time.time()
                for w in self.watches:
                    self.widen(w)
                    w.look(leases, held, before, after)
                self.watches = [w for w in self.watches if not w.over]

    def widen(self, w):
        """A node that is stopped while it writes to the shared file blocks all other nodes."""
        if w.fault["end"] == 0 and self.ad.holds_store(self.ad.procs[w.fault["node"]].pid):
            w.names = set(self.ad.nodes)
            w.fault["outage"] = True

    def watch(self):
        while not self.quit.wait(LOOK):
            self.look()

    def join(self, *given):
        """Called at the end, when all affected runs are known."""
        super().join(*given)
        end = time.time() + 4 * RUN_LEASE
        self.load.fault["end"] = time.time()
        while self.watches and time.time() < end:
            self.look()
            time.sleep(LOOK)
        bodies, _ = nemesis.read_ledger(self.ad.work + "/ledger")
        ended = {b["id"]: b["e"] for b in bodies if b["e"]}
        for w in self.watched:
            mine = {run for run in w.victims if ended.get(run, w.fault["t"]) > w.fault["t"] - RECORDED}
            w.fault["victims"] = sorted(mine | set(w.fault["victims"]))
        if self.load.victims - {run for f in self.faults for run in f["victims"]}:
            self.faults.append(self.load.fault)

    # ---- faults ----

    def run(self):
        """
        A fault begins when the backlog of the previous one is gone. The judge excuses lateness only by faults around the time of
        the slot, so a run that waits through two faults would be called late. With DENSE=1 faults begin at any time, and
        lateness is not judged.
        """
        while not self.quit.wait(self.rng.expovariate(1 / self.every)):
            while self.unready() and not self.quit.wait(0.1):
                pass
            if not self.quit.is_set():
                self.deck = self.deck or self.rng.sample(self.ops, len(self.ops))  # each fault once before any repeats
                op, node, hold = self.deck.pop(), self.rng.choice(self.ad.nodes), self.rng.uniform(*self.hold)
                self.once(op, self.busiest(node) if self.rng.random() < 0.5 else node, hold)

    def busiest(self, other):
        """The node that holds the most runs; a fault of a node without runs tests nothing."""
        with contextlib.suppress(RuntimeError):
            held = self.ad.held()
            return max((len(held.get(i, [])), name) for i, name, _ in self.ad.leases())[1]
        return other

    def unready(self):
        with contextlib.suppress(RuntimeError):
            return self.ad.tired() or not DENSE and self.ad.backlog()
        return True

    def once(self, op, node, hold):
        kind, past = (op[:-5], True) if op.endswith("-past") else (op, False)
        if past:
            hold = RUN_LEASE * self.rng.uniform(1.3, 2.5)
        if kind not in HARMLESS:
            threading.Thread(target=self.begin, args=(len(self.faults), kind, node), daemon=True).start()
        own = getattr(self, "do_" + kind.replace("-", "_"), None)
        if own:
            f = dict(kind=kind, node=node, t=time.time(), end=0, outage=len(self.ad.nodes) == 1, victims=[])
            self.faults.append(f)
            own(f, node, hold)
            f["end"] = time.time()
        else:
            super().once(kind, node, hold)
        self.faults[-1]["kind"] = op

    def begin(self, index, kind, node):
        while len(self.faults) <= index:
            time.sleep(0.001)
        w = Watch(self.faults[index], set(self.ad.nodes) if kind in ALL else {node})
        with self.lock:
            self.watches.append(w)
            self.watched.append(w)

    def wait_second(self):
        """Waits until many runs are due at once, and no run is waiting; see run()."""
        while not self.quit.wait(1 - time.time() % 1) and self.unready():
            pass

    def do_pause_claim(self, f, node, hold):
        """Stops a node while it claims, or just after it has claimed, the runs of a full second."""
        self.wait_second()
        self.quit.wait(self.rng.uniform(0, 0.03))
        f["t"] = time.time()
        pid = self.ad.procs[node].pid
        self.sig([pid], signal.SIGSTOP)
        self.quit.wait(max(hold, 1.3 * RUN_LEASE))
        self.sig([pid], signal.SIGCONT)

    def do_kill_host(self, f, node, hold):
        """Kills the machine: engine, spawner and workers. Ends that are not recorded are lost."""
        spawner = self.ad.spawner(node)
        pids = [self.ad.procs[node].pid, *([spawner] if spawner else [])]
        f["t"] = time.time()
        self.sig(pids, signal.SIGSTOP)
        for worker in self.ad.children(spawner):  # without a search through all processes, which would take long
            with contextlib.suppress(OSError):
                os.killpg(worker, signal.SIGKILL)
        self.sig(pids, signal.SIGKILL)
        self.ad.procs[node].wait()
        self.sig(self.ad.workers(node), signal.SIGKILL)
        w = Watch(f, {node})
        with contextlib.suppress(RuntimeError):
            ids = {i for i, name, _ in self.ad.leases() if name == node}
            w.victims = {run for i, runs in self.ad.held().items() if i in ids for run, _ in runs}
        self.watched.append(w)
        self.quit.wait(hold)
        self.ad.start(node)

    def do_cut_off(self, f, node, hold):
        """Blocks the traffic between this node and the store silently."""
        self.ad.proxies[node].open.clear()
        self.quit.wait(hold)
        self.ad.proxies[node].open.set()

    def do_cut_claim(self, f, node, hold):
        """Cuts a node off after the store has committed its claim and before it gets the answer, until other nodes have the runs."""
        proxy, cut = self.ad.proxies[node], threading.Event()

        def strike():
            proxy.after_claim = None
            proxy.open.clear()
            cut.set()

        self.wait_second()
        proxy.after_claim = strike
        cut.wait(PATIENCE)
        proxy.after_claim = None
        f["t"] = time.time()
        self.quit.wait(max(hold, 1.5 * RUN_LEASE) if cut.is_set() else 0)
        proxy.open.set()

    def do_flap(self, f, node, hold):
        """Alternates: one second with the store, one second without."""
        end = time.time() + hold
        while time.time() < end and not self.quit.is_set():
            self.do_cut_off(f, node, 1)
            self.quit.wait(1)

    def do_cut_commit(self, f, node, hold):
        """Ends some connections just before a COMMIT, or between a COMMIT and its answer."""
        rng = random.Random(self.rng.random())  # used by other threads
        self.ad.proxies[node].cut_commits = lambda: rng.choice([None, None, "before", "after"])
        self.quit.wait(hold)
        self.ad.proxies[node].cut_commits = None


# ---- evidence for the judge ----

def make_jobs(*given, make=nemesis.make_jobs):
    """Jobs that always fail keep failing after lost attempts. Some runs last longer than two leases."""
    jobs = make(*given)
    seconds = given[2]
    for i, j in enumerate(jobs):
        if j["fails"] >= j["max_attempts"]:
            j["fails"] = ALWAYS
        elif i % LONG_EACH == 0 and not j["fails"]:
            period = int(LONG * RUN_LEASE / 0.7)
            j.update(period_ms=period * 1000, dur=LONG * RUN_LEASE, count=max(1, int((seconds - 6) / period)))
    return jobs


def check(jobs, bodies, history, faults, *given, judge=nemesis.check):
    """
    The judge counts every attempt against the limit of retries; in jobsched a lost attempt uses up no retry. So for jobs that
    always fail, lost attempts that a fault hit are removed and the others are renumbered.
    """
    doomed = {j["name"] for j in jobs if j["fails"] == ALWAYS}
    hit = {run for f in faults for run in f["victims"]}
    lost = {"%s/%d" % (h["run"], h["attempt"]) for h in history if h["job"] in doomed and h["state"] in ("lost", "stale")} & hit

    def number(run, attempt):
        return attempt - sum("%s/%d" % (run, a) in lost for a in range(1, attempt))

    def name(which):
        run, attempt = which.split("/")
        return "%s/%d" % (run, number(run, int(attempt)))

    bodies = [dict(b, att=number(b["run"], b["att"]), id=name(b["id"])) for b in bodies if b["id"] not in lost]
    history = [dict(h, attempt=number(h["run"], h["attempt"])) for h in history if "%s/%d" % (h["run"], h["attempt"]) not in lost]
    faults = [dict(f, victims=[name(v) for v in f["victims"] if v not in lost]) for f in faults]
    return judge(jobs, bodies, history, faults, *given)


if __name__ == "__main__":
    nemesis.Nemesis, nemesis.make_jobs, nemesis.check = Driver, make_jobs, check
    nemesis.main()
