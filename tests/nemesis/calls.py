# SPDX-License-Identifier: Apache-2.0
# Faults against nodes whose jobs are HTTP calls. The target is idempotent: it acts once per Idempotency-Key. The judge reads the
# target's ledger: each slot has exactly one effective call. SECONDS=n lasts longer, SEED=n repeats, KEEP=1 keeps the evidence.
import atexit
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from datetime import datetime, timezone

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
from adapter import RUN_LEASE, Postgres, Sqlite
from harness import Skip, Unreachable, case, instant, main, wait_until
from pg import BIN
from web import Web

SECONDS = float(os.environ.get("SECONDS", 20))
DOOMED = "doomed"
RETRIES = 30
GRACE = 180


class Target(Web):
    """Acts once per key and records every request. Some answers are late or cut off after the action."""

    def __init__(self, path, rng):
        self.ledger, self.rng, self.lock, self.done = open(path, "a"), rng, threading.Lock(), set()

        def answer(request):
            body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
            key = request.headers["Idempotency-Key"]
            doomed = request.path == "/" + DOOMED
            with self.lock:
                fate = self.rng.random()
                effective = not doomed and key not in self.done and fate > 0.1
                self.done.update([key] if effective else [])
                self.ledger.write(json.dumps(dict(
                    key=key, job=request.headers["Jobsched-Job"].split()[0], slot=round(1000 * instant(request.headers["Jobsched-Slot"])),
                    run=int(request.headers["Jobsched-Run"]), attempt=int(request.headers["Jobsched-Attempt"]), effective=effective,
                    at=time.time(), body=body.decode())) + "\n")
                self.ledger.flush()
                known = key in self.done
            time.sleep(0.05 if fate < 0.7 else 1.5 * (fate - 0.7))
            if known and fate > 0.9:  # the client does not learn that the target has acted
                request.close_connection = True
                return
            request.send_response(200 if known else 503)
            request.send_header("Content-Length", "0")
            request.end_headers()
        super().__init__(protocol_version="HTTP/1.1", do_POST=answer)


# ---- the judge ----

def judge(jobs, ledger, runs):
    """The violations, each (rule, what). 'runs': (job, slot) -> list of (run, state); 'jobs': dicts with name, doomed and slots."""
    found = []
    calls, keys = defaultdict(list), defaultdict(set)
    for c in ledger:
        calls[c["job"], c["slot"]].append(c)
        keys[c["key"]].add((c["job"], c["slot"]))
    wanted = {(j["name"], s): j["doomed"] for j in jobs for s in j["slots"]}
    for key, of in keys.items():
        if len(of) > 1:
            found.append(("shared-key", "%s: %s" % (key, sorted(of))))
    for slot, mine in calls.items():
        if slot not in wanted:
            found.append(("invented", str(slot)))
        if len({c["key"] for c in mine}) > 1:
            found.append(("two-keys", str(slot)))
        if len({c["run"] for c in mine}) > 1:
            found.append(("two-runs", str(slot)))
    for slot, doomed in wanted.items():
        effective = sum(c["effective"] for c in calls[slot])
        states = [state for _, state in runs.get(slot, [])]
        if effective > 1:
            found.append(("twice", str(slot)))
        if len(states) != 1:
            found.append(("rows", "%s: %s" % (slot, states)))
        elif doomed and (effective or states[0] not in ("dead",)):
            found.append(("doomed", "%s is %s" % (slot, states[0])))
        elif not doomed and effective == 0:
            found.append(("phantom" if states[0] == "success" else "missed", "%s is %s" % (slot, states[0])))
        elif not doomed and states[0] != "success":
            found.append(("lost-result", "%s is %s" % (slot, states[0])))
    return found


# ---- the nodes and the faults ----

def with_calls(base):
    class Calls(base):
        def config(self, node):
            return super().config(node) + "http-allow = 127.0.0.0/8\n"

        def add(self, job, url):
            start = datetime.fromtimestamp(job["slots"][0] // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            spec = dict(name=job["name"], key=job["name"], http="POST", url=url, body=job["name"], catchup="all:1000", tz="UTC",
                        retries=1 if job["doomed"] else RETRIES, backoff="fixed:100ms", on_lost="rerun", overlap=job["overlap"], timeout=10,
                        schedule=["R%d/%s/PT%dS" % (len(job["slots"]), start, job["period"])])
            for node in self.nodes * 100:
                with contextlib.suppress(Unreachable):
                    if self.api(node).call("POST", "/v1/jobs", spec)[0] in (200, 201):
                        return
                time.sleep(0.2)
            raise AssertionError("no node took the job")

        def net(self, node):
            mark = os.path.join(self.node[node].dir, "run").encode()
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    with open("/proc/%s/cmdline" % pid, "rb") as f:
                        words = f.read()
                    if os.path.basename(words.split(b"\0")[0]) == b"jobsched-net" and mark in words:
                        return int(pid)
            return None

        def stop(self):
            nets = [self.net(node) for node in self.node]
            super().stop()
            for pid in filter(None, nets):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
    return Calls


def strike(ad, op, node, hold):
    """One fault, from its begin to its end."""
    def send(pids, number):
        for pid in filter(None, pids):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
    daemon = ad.procs[node].pid
    if op in ("pause-daemon", "pause-net"):
        pids = [daemon] if op == "pause-daemon" else [ad.net(node)]
        send(pids, signal.SIGSTOP)
        time.sleep(hold)
        send(pids, signal.SIGCONT)
    elif op == "cut-off":
        ad.proxies[node].open.clear()
        time.sleep(hold)
        ad.proxies[node].open.set()
    elif op == "cut-commit":
        rng = random.Random(hold)
        ad.proxies[node].cut_commits = lambda: rng.choice([None, None, "before", "after"])
        time.sleep(hold)
        ad.proxies[node].cut_commits = None
    elif op == "kill-net":
        send([ad.net(node)], signal.SIGKILL)
    else:
        nodes = ad.nodes if op == "all-down" else [node]
        for n in nodes:
            send([ad.procs[n].pid] + ([ad.net(n), ad.spawner(n)] if op == "kill-host" else []), signal.SIGKILL)
            ad.procs[n].wait()
        time.sleep(hold)
        for n in nodes:
            ad.start(n)
    if ad.procs[node].poll() is not None:  # another node has ended the stopped holder of the lock
        ad.start(node)


def tired(ad):
    """A run that was lost three times is given up, so no fault follows before such a run has ended."""
    with contextlib.suppress(RuntimeError):
        return ad.tired()
    return True


def make_jobs(rng, first):
    jobs = []
    for i in range(12):
        period = rng.choice([1, 1, 2, 3])
        jobs.append(dict(name="j%02d" % i, period=period, doomed=i % 6 == 5, overlap=rng.choice(["allow", "queue:1000"]),
                         slots=[(first + k * period) * 1000 for k in range(int(SECONDS / period))]))
    return jobs


def calls_of(base, ops):
    rng = random.Random(random.random())  # of SEED
    work = tempfile.mkdtemp(prefix="jobsched-nc.")
    ad = with_calls(base)(work, ["n0", "n1", "n2"])
    atexit.register(ad.stop)
    counts = defaultdict(int)
    with Target(work + "/ledger", rng) as target:
        for n in ad.nodes:
            ad.start(n)
        for n in ad.nodes:
            wait_until("node %s answers" % n, 120, lambda n=n: ad.ready(n))
        jobs = make_jobs(rng, int(time.time()) + 8)
        for j in jobs:
            ad.add(j, target.url + "/" + (DOOMED if j["doomed"] else j["name"]))
        end = jobs[0]["slots"][0] / 1000 + SECONDS
        time.sleep(max(0, jobs[0]["slots"][0] / 1000 - time.time()))
        while time.time() < end:
            if not tired(ad):
                op, node = rng.choice(ops), rng.choice(ad.nodes)
                counts[op] += 1
                strike(ad, op, node, rng.choice([0.5, 1, 1.6 * RUN_LEASE]))
            time.sleep(rng.expovariate(2))

        def settled():
            with contextlib.suppress(RuntimeError):
                rows = [r for r in ad.list_runs() if r["attempt"] == 0]
                return len(rows) >= sum(len(j["slots"]) for j in jobs) and all(r["state"] != "open" for r in rows)
        with contextlib.suppress(AssertionError):
            wait_until("all runs have ended", GRACE, settled, 0.5)
        runs = defaultdict(list)
        for r in ad.list_runs():
            if r["attempt"] == 0:
                runs[r["job"], r["slot"]].append((r["run"], r["state"]))
        ad.stop()
    with open(work + "/ledger") as f:
        ledger = [json.loads(line) for line in f]
    found = judge(jobs, ledger, runs)
    assert not found, "evidence in %s: %s" % (work, found[:10])
    repeated = len(ledger) - len({(c["key"]) for c in ledger})
    if not os.environ.get("KEEP"):
        shutil.rmtree(work, ignore_errors=True)
    return "%d slots, %d calls, %d of them repeated; %s" % (len(runs), len(ledger), repeated, dict(counts))


@case
def the_judge_finds_each_violation():
    jobs = [dict(name="a", doomed=False, slots=[1000, 2000]), dict(name="b", doomed=True, slots=[1000])]

    def call(key, job="a", slot=1000, run=1, effective=True):
        return dict(key=key, job=job, slot=slot, run=run, attempt=1, effective=effective)
    good = [call("k1"), call("k1", effective=False), call("k2", slot=2000, run=2), call("k3", job="b", run=3, effective=False)]
    rows = {("a", 1000): [(1, "success")], ("a", 2000): [(2, "success")], ("b", 1000): [(3, "dead")]}
    assert judge(jobs, good, rows) == []

    def rules(ledger, **changed):
        return {rule for rule, _ in judge(jobs, ledger, rows if "row" not in changed else {**rows, ("a", 2000): changed["row"]})}
    assert rules(good + [call("k4")]) == {"twice", "two-keys"}
    assert rules(good + [call("k1", effective=True)]) == {"twice"}
    assert rules(good[:2] + good[3:]) == {"phantom"}
    assert rules(good[:2] + good[3:], row=[(2, "lost")]) == {"missed"}
    assert rules(good, row=[(2, "dead")]) == {"lost-result"}
    assert rules(good, row=[]) == {"rows"} and rules(good, row=[(2, "success"), (4, "success")]) == {"rows"}
    assert rules(good + [call("k1", slot=2000, run=2, effective=False)]) == {"shared-key", "two-keys"}
    assert rules(good + [call("k1", run=9, effective=False)]) == {"two-runs"}
    assert rules(good + [call("k5", slot=3000, run=5)]) == {"invented"}
    assert rules(good[:3] + [call("k3", job="b", run=3)]) == {"doomed"}


@case
def each_slot_has_one_effective_call_on_three_nodes_that_share_a_file():
    return calls_of(Sqlite, ["kill-daemon", "kill-host", "kill-net", "pause-daemon", "pause-net", "all-down"])


@case
def each_slot_has_one_effective_call_on_three_nodes_with_postgresql():
    if not os.path.isdir(BIN):
        raise Skip("needs Debian's postgresql")
    return calls_of(Postgres, ["kill-daemon", "kill-host", "kill-net", "pause-daemon", "pause-net", "cut-off", "cut-commit"])


if __name__ == "__main__":
    main()
