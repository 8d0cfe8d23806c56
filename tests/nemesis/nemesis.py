#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nemesis.py - Jepsen-like acceptance test for a job scheduler (stdlib only, Linux).

  nemesis.py run DIR --adapter toy_sched:Toy --nodes 3 --jobs 60 --seconds 60 --seed 7
  nemesis.py check DIR            re-judge stored evidence (exit 0 valid, 1 INVALID, 2 unknown)

Evidence, one directory per run: jobs.json (what was submitted, with the acknowledgement),
ledger (what really ran, appended by the bodies themselves), history.json (what the
scheduler claims: a row with attempt 0 for each slot's run, a row for each attempt),
faults.json (what the nemesis did and whom it struck), report.json (verdict, figures).

Contract with the daemon: a job's environment holds JOBSCHED_RUN (id of the slot's run),
JOBSCHED_SLOT_MS (scheduled time, epoch ms), JOBSCHED_ATTEMPT (1..), JOBSCHED_FENCE (grows
with every grant) and JOBSCHED_NODE; a job's processes can be found by these.

Rules.  A slot is one (job, scheduled time); a body is one execution seen in the ledger.
  missed       an expected slot has no body that ended with 0 (or: skipped without cause)
  duplicate    a body started although its predecessor succeeded or was left alone.  The order is that of the
               first lines in the ledger.  A worker that was started and then frozen before its first line has the
               start that its spawner recorded (history: started), if a fault lies between the two
  overlap      two bodies of an overlap=forbid job alive together (kernel lock, intervals)
  early/late   first start before the slot / after its deadline (fault windows extend it)
  unlabelled   as Jepsen's Chronos checker: matching starts to slots by time alone fails
  invented     a body or row for a slot nobody asked for
  ghost        a body the history does not know     phantom   a result no body backs
  lost-result  a success of a body never recorded   stuck     a slot not terminal at the end
  twice        two runs, or two accepted successes, for one slot
  stale        the accepted attempt is not the last one granted, or a fence went backwards
  retries      attempts beyond the limit, or a doomed slot not dead after exactly the limit
  job-set      acknowledged jobs lost or doubled    leftover/store  processes, integrity
"""
import argparse, atexit, bisect, contextlib, heapq, importlib, json, os, random, signal, subprocess, sys, threading, time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

BODY = r"""#!/bin/bash
# body.sh JOB SECONDS LOCK? FAILS LEDGER - every line is one O_APPEND write
say() { read -r up _ </proc/uptime; printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$J" "$JOBSCHED_SLOT_MS" \
  "$JOBSCHED_RUN" "$JOBSCHED_ATTEMPT" "${JOBSCHED_FENCE:-0}" "$$" "$EPOCHREALTIME" "$up" "$2" >>"$L"; }
export L=$5; J=$1 rc=0                      # L marks our children too, see Adapter.workers
say S -
if [ "$3" = 1 ]; then exec 9>>"$L.lock.$J"; flock -n 9 || say O -; fi   # somebody of this job is alive
sleep "$2"
[ "$JOBSCHED_ATTEMPT" -le "$4" ] && rc=1
say E $rc; exit $rc
"""
CFG = dict(eps=1.0, tol=0.01, takeover=6.0, recover=2.0, min_slots=100, min_faults=1)


def slots(job):                                                 # scheduled times, epoch milliseconds
    return [job["start_ms"] + k * job["period_ms"] for k in range(job["count"])]


def read_ledger(path):
    """-> (bodies sorted by start, number of malformed lines)."""
    live, bodies, bad = {}, [], 0
    for line in open(path, errors="replace"):
        try:
            kind, job, slot, run, att, fence, pid, wall, up, rc = line.rstrip("\n").split("\t")
            if kind == "S":
                b = dict(job=job, slot=int(slot), run=run, att=int(att), fence=int(fence), id="%s/%s" % (run, att),
                         s=float(wall), su=float(up), e=None, eu=None, rc=None, clash=False)
                live[run, att, pid] = b
                bodies.append(b)
            elif kind == "O":
                live[run, att, pid]["clash"] = True
            else:
                live[run, att, pid].update(e=float(wall), eu=float(up), rc=int(rc))
        except (ValueError, KeyError):
            bad += 1
    return sorted(bodies, key=lambda b: b["s"]), bad


def windows(faults, cfg):
    """Merged intervals in which lateness is excused.  With healthy nodes left, a fault
    excuses `takeover` seconds only, however long the victim stays down; plus `recover`."""
    out = []
    for a, b in sorted((f["t"], (f["end"] if f["outage"] else min(f["end"], f["t"] + cfg["takeover"])) + cfg["recover"]) for f in faults):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


def deadline(t, wins, eps):
    return next((b for a, b in wins if a <= t + eps and t <= b), t) + eps


def begun(b, known, faults):
    """When a body was started: by the spawner's record if a fault kept the body from its first line, else by that line."""
    started = known.get((b["run"], b["att"]), {}).get("started") or b["s"]
    frozen = any(f["t"] <= b["s"] and (f["end"] or b["s"]) >= started for f in faults)
    return started if started < b["s"] and frozen else b["s"]


def pct(xs, p):
    xs = sorted(xs)
    return round(xs[min(len(xs) - 1, int(p * len(xs)))], 4) if xs else None


def check(jobs, bodies, history, faults, cfg=None, extra=(), bad_lines=0):
    """The judge: pure function of the evidence -> report dict."""
    cfg = dict(CFG, **(cfg or {}))
    wins, figs = windows(faults, cfg), Counter()
    v = [dict(rule=r, job="", slot="", why=w) for r, w in extra]   # the adapter's own findings
    hit = {x for f in faults for x in f["victims"]}           # "run/attempt" whose processes the nemesis struck
    timed = not any(f["kind"] == "clock" for f in faults)     # clocks moved: judge identity, not punctuality

    def add(rule, job="", slot="", why=""):
        v.append(dict(rule=rule, job=job, slot=slot, why=why))

    by_slot, by_job, rows, late_clear, late_fault = defaultdict(list), defaultdict(list), defaultdict(list), [], []
    known = {(h["run"], h["attempt"]): h for h in history if h["attempt"] > 0}
    for b in bodies:
        by_slot[b["job"], b["slot"]].append(b)
        by_job[b["job"]].append(b)
        if (b["run"], b["att"]) not in known:
            add("ghost", b["job"], b["slot"], "run %s attempt %d not in history" % (b["run"], b["att"]))
        if timed and b["s"] < b["slot"] / 1000 - cfg["tol"]:
            add("early", b["job"], b["slot"], "%.3f s" % (b["slot"] / 1000 - b["s"]))
    for h in history:
        rows[h["job"], h["slot"]].append(h)
    for name, slot in sorted((set(by_slot) | set(rows)) - {(j["name"], t) for j in jobs if j["ack"] != "fail" for t in slots(j)}):
        add("invented", name, slot)

    for j in jobs:
        name, mine = j["name"], by_job[j["name"]]
        if j["overlap"] == "forbid":
            last = None
            for b in sorted(mine, key=lambda b: b["su"]):
                if b["clash"] or (last and last["eu"] is not None and b["su"] < last["eu"] - 0.03):
                    add("overlap", name, b["slot"], "attempt %d at %.3f" % (b["att"], b["s"]))
                last = b if not last or (b["eu"] or 0) >= (last["eu"] or 0) else last
        targets, starts, ends = [], [b["s"] for b in mine], [0.0]
        for b in mine:                                        # ends[k]: when the first k bodies were all over
            ends.append(max(ends[-1], b["e"] or 0))
        for slot in slots(j) if j["ack"] != "fail" else []:
            t, bs = slot / 1000, by_slot[name, slot]
            hs = sorted((h for h in rows[name, slot] if h["attempt"]), key=lambda h: h["attempt"])
            own = [h for h in rows[name, slot] if not h["attempt"]]
            must = j["ack"] == "ok" and t >= j["ack_t"]       # acknowledged before it was due
            doomed = j["fails"] >= j["max_attempts"]
            good = [b for b in bs if b["rc"] == 0]
            state = own[0]["state"] if own else None
            queue = ends[bisect.bisect_left(starts, bs[0]["s"] if bs else t)] if j["overlap"] == "forbid" else 0
            due = max(deadline(t, wins, cfg["eps"]), queue + cfg["eps"])
            figs["slots"] += must
            if state == "skipped":
                busy = any(b["s"] <= t + cfg["eps"] and (b["e"] or b["s"] + j["dur"]) >= t for b in mine if b["slot"] != slot)
                figs["skipped"] += 1
                if not (j["may_skip"] and busy):
                    add("missed", name, slot, "skipped without a running predecessor")
                continue
            if must and not doomed and not good:
                add("missed", name, slot, "state %s, %d bodies" % (state, len(bs)))
            if must and state not in ("success", "dead"):
                add("stuck", name, slot, "state %s" % state)
            if bs:
                lateness = bs[0]["s"] - t
                (late_clear if due <= t + cfg["eps"] else late_fault).append(lateness)
                if timed and must and bs[0]["s"] > due:
                    add("late", name, slot, "%.3f s late, allowed %.3f" % (lateness, due - t))
            if timed and must and not doomed:
                targets.append((t - cfg["tol"], due))
            order = sorted(bs, key=lambda b: begun(b, known, faults))
            for p, b in zip(order, order[1:]):
                figs["extra_bodies"] += 1
                if p["rc"] is not None and p["rc"] != 0:
                    figs["retries"] += 1                        # an honest failure, retried
                elif p["id"] in hit:
                    figs["dups_excused"] += 1                   # the nemesis hit the predecessor
                else:
                    figs["dups_unexcused"] += 1
                    add("duplicate", name, slot, "attempt %d after %d (rc %s)" % (b["att"], p["att"], p["rc"]))
            wonrows = [h for h in hs if h["state"] == "success"]
            if len(own) > 1 or len({h["run"] for h in hs}) > 1 or len(wonrows) > 1:
                add("twice", name, slot, "%d runs, %d successes" % (len(own), len(wonrows)))
            if wonrows and wonrows[-1]["attempt"] != hs[-1]["attempt"]:
                add("stale", name, slot, "attempt %d accepted, last granted %d" % (wonrows[-1]["attempt"], hs[-1]["attempt"]))
            if any(a["fence"] >= b["fence"] for a, b in zip(hs, hs[1:])):
                add("stale", name, slot, "fence did not grow")
            backed = [h for h in wonrows if any((b["run"], b["att"], b["rc"]) == (h["run"], h["attempt"], 0) for b in bs)]
            bare = [h for h in hs if h["state"] == "failed" and "%s/%d" % (h["run"], h["attempt"]) not in hit | {b["id"] for b in bs}]
            if len(backed) < len(wonrows) or state == "success" and not backed or bare:
                add("phantom", name, slot, "state %s, accepted %s, failures without a body %d" % (state, [h["attempt"] for h in wonrows], len(bare)))
            if good and state != "success":
                add("lost-result", name, slot, "body succeeded, history says %s" % state)
            if hs and hs[-1]["attempt"] > j["max_attempts"]:
                add("retries", name, slot, "%d attempts, limit %d" % (hs[-1]["attempt"], j["max_attempts"]))
            if must and doomed and (state != "dead" or len(hs) < j["max_attempts"]):
                add("retries", name, slot, "doomed slot: state %s after %d attempts" % (state, len(hs)))
        # Chronos-style, label-free: earliest-deadline greedy is a maximum matching for intervals
        heap, todo, free = [], sorted(targets), 0
        lag = 60 if j["fails"] or any(b["id"] in hit for b in mine) else 0   # successes of retried slots come later
        for s in sorted(b["s"] for b in mine if b["rc"] == 0):
            while todo and todo[0][0] <= s:
                heapq.heappush(heap, todo.pop(0)[1])
            while heap and heap[0] + lag < s:
                heapq.heappop(heap)
                free += 1
            if heap:
                heapq.heappop(heap)
        if free + len(heap) + len(todo):
            add("unlabelled", name, "", "%d of %d slots have no start of their own" % (free + len(heap) + len(todo), len(targets)))

    allstarts = [b["s"] for b in bodies] + [float("inf")]
    stalls = [x for x in (allstarts[bisect.bisect(allstarts, f["t"])] - f["t"] for f in faults) if x < 1e9]
    thin = figs["slots"] < cfg["min_slots"] or len(faults) < cfg["min_faults"] or not history or bad_lines
    return dict(verdict="INVALID" if v else "unknown" if thin else "valid", rules=dict(Counter(x["rule"] for x in v)), violations=v,
        figures=dict(figs, bodies=len(bodies), jobs=len(jobs), faults=dict(Counter(f["kind"] for f in faults)), bad_ledger_lines=bad_lines,
                     lateness_clear={p: pct(late_clear, q) for p, q in (("p50", .5), ("p99", .99), ("p999", .999), ("max", 1))},
                     lateness_faulted={p: pct(late_fault, q) for p, q in (("p50", .5), ("p99", .99), ("max", 1))},
                     slots_clear=len(late_clear), slots_in_fault_windows=len(late_fault),
                     stall_after_fault={p: pct(stalls, q) for p, q in (("p50", .5), ("max", 1))}, cfg=cfg))


class Adapter:
    """What a system under test must provide.  node is "n0", "n1"..."""

    def __init__(self, work, nodes):
        self.work, self.nodes, self.procs = work, nodes, {}

    def start(self, node): raise NotImplementedError           # start the daemon (not its workers)
    def ready(self, node): return True                          # accepting submissions?
    def submit(self, job, command): raise NotImplementedError   # "ok" | "fail" | "info"; job["key"] is the idempotency key
    def list_jobs(self): raise NotImplementedError              # [name...]
    def list_runs(self): raise NotImplementedError              # rows: job slot run attempt fence state (attempt 0: the run itself)
    def store_fault(self, kind): raise NotImplementedError      # start it, return a function that ends it (proxy, full disk)
    def clock(self, node, seconds): raise NotImplementedError   # likewise, e.g. a libfaketime offset file
    def integrity(self): return []                              # ["what is wrong"...]
    def stop(self): pass

    def workers(self, node=None):
        """{pid: "run/attempt"} of live job processes of this test, found by their environment."""
        out = {}
        for p in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                raw = open("/proc/%s/environ" % p, errors="replace").read()
                env = dict(x.split("=", 1) for x in raw.split("\0") if "=" in x)
                if "JOBSCHED_RUN" in env and node in (None, env.get("JOBSCHED_NODE")) and self.work in raw + open("/proc/%s/cmdline" % p, errors="replace").read():
                    out[int(p)] = "%s/%s" % (env["JOBSCHED_RUN"], env["JOBSCHED_ATTEMPT"])
        return out


class Jobctl(Adapter):
    """Skeleton for jobschedd/jobctl: fill in the real flags when they exist."""

    def start(self, node):
        self.procs[node] = subprocess.Popen(["jobschedd", "--node", node, "--store", self.work + "/jobs.db", "--socket", self.work + "/" + node])

    def ctl(self, *a):
        for n in self.nodes:                                    # any live node will do
            r = subprocess.run(["jobctl", "--socket", self.work + "/" + n, "--json", *a], capture_output=True, timeout=10)
            if r.returncode == 0:
                return json.loads(r.stdout or b"null")
        raise RuntimeError(r.stderr.decode(errors="replace"))

    def submit(self, job, command):
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            self.ctl("submit", "--name", job["name"], "--idempotency-key", job["key"], "--start-ms", str(job["start_ms"]), "--every-ms", str(job["period_ms"]),
                     "--count", str(job["count"]), "--overlap", job["overlap"], "--max-attempts", str(job["max_attempts"]), "--", *command)
            return "ok"
        return "info"                                           # unknown: resubmit with the same key

    def list_jobs(self): return [j["name"] for j in self.ctl("list")]
    def list_runs(self): return self.ctl("runs", "--all", "--attempts")


class Nemesis(threading.Thread):
    """Applies random faults, one at a time per node, until told to stop; logs each of them."""

    def __init__(self, ad, ops, rng, every, hold):
        super().__init__(daemon=True)
        self.ad, self.ops, self.rng, self.every, self.hold = ad, ops, rng, every, hold
        self.faults, self.quit = [], threading.Event()

    def sig(self, pids, s):
        for p in pids:
            with contextlib.suppress(OSError):
                os.kill(p, s)

    def run(self):
        while not self.quit.wait(self.rng.expovariate(1 / self.every)):
            self.once(self.rng.choice(self.ops), self.rng.choice(self.ad.nodes), self.rng.uniform(*self.hold))

    def once(self, op, node, hold):
        ad = self.ad
        f = dict(kind=op, node=node, t=time.time(), end=0, outage=len(ad.nodes) == 1 or op in ("all-down", "blackhole", "slow", "down"), victims=[])
        self.faults.append(f)
        if op in ("kill-worker", "kill-one"):                   # all processes of a run, or any single one of them
            w = ad.workers()
            if w:
                pid = self.rng.choice(sorted(w))
                f["victims"] = [w[pid]]
                self.sig([p for p, r in w.items() if r == w[pid]] if op == "kill-worker" else [pid], signal.SIGKILL)
        elif op in ("kill-daemon", "kill-node", "term"):
            doomed = ad.workers(node) if op == "kill-node" else {}
            self.sig([ad.procs[node].pid], signal.SIGTERM if op == "term" else signal.SIGKILL)
            self.sig(doomed, signal.SIGKILL)
            ad.procs[node].wait()
            late = ad.workers(node) if op == "kill-node" else {}  # spawned between the two looks
            self.sig(late, signal.SIGKILL)
            f["victims"] = sorted({*doomed.values(), *late.values()})
            self.quit.wait(hold)
            ad.start(node)
        elif op in ("pause", "pause-node"):                     # a GC pause / a frozen virtual machine
            w = ad.workers(node) if op == "pause-node" else {}
            f["victims"] = sorted(set(w.values()))
            self.sig([ad.procs[node].pid, *w], signal.SIGSTOP)
            self.quit.wait(hold)
            self.sig([ad.procs[node].pid, *w], signal.SIGCONT)
        elif op == "all-down":
            self.sig([ad.procs[n].pid for n in ad.nodes], signal.SIGKILL)
            for n in ad.nodes:
                ad.procs[n].wait()
            self.quit.wait(hold)
            for n in ad.nodes:
                ad.start(n)
        else:                                                   # "clock", or a store fault: "blackhole", "slow", "down"...
            undo = ad.clock(node, self.rng.choice([-3600, -90, -5, 5, 90, 3600])) if op == "clock" else ad.store_fault(op)
            self.quit.wait(hold)
            undo()
        f["end"] = time.time()


def make_jobs(rng, n, seconds, t0):
    """Random workload: periods 1-10 s, a tenth fails once, a twentieth always fails."""
    out = []
    for i in range(n):
        period = rng.choice([1, 1, 2, 3, 5, 10, 10])
        fails = rng.choices([0, 1, 3], [17, 2, 1])[0]
        dur = 0.05 if fails else rng.choice([0, 0.05, 0.2, 0.7 * period])   # some outlive a lease; retries must fit into the period
        start = int((t0 + rng.uniform(4, 6)) * 1000)
        out.append(dict(name="j%03d" % i, key="k%03d" % i, start_ms=start, period_ms=period * 1000, count=max(1, int((seconds - 6) / period)), dur=dur, fails=fails,
                        max_attempts=3 if fails == 3 else 8, overlap=rng.choice(["forbid", "forbid", "allow"]), may_skip=False, ack="info", ack_t=0))
    return out


def execute(a):
    rng, work = random.Random(a.seed), os.path.abspath(a.out)
    os.makedirs(work, exist_ok=True)
    for name, text in (("/body.sh", BODY), ("/ledger", "")):
        with open(work + name, "w") as f:
            f.write(text)
    mod, cls = a.adapter.split(":")
    ad = getattr(importlib.import_module(mod), cls)(work, ["n%d" % i for i in range(a.nodes)])
    atexit.register(ad.stop)                                    # leave no daemon behind, whatever happens
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    for n in ad.nodes:
        ad.start(n)
    while not all(ad.ready(n) for n in ad.nodes):
        time.sleep(0.1)
    jobs = make_jobs(rng, a.jobs, a.seconds, time.time())

    def submit(j):                                              # same key again until the answer is definite
        cmd = ["/bin/bash", work + "/body.sh", j["name"], str(j["dur"]), str(int(j["overlap"] == "forbid")), str(j["fails"]), work + "/ledger"]
        for _ in range(30):
            j["ack"], j["ack_t"] = ad.submit(j, cmd), time.time()
            if j["ack"] != "info":
                break
            time.sleep(0.5)

    nem = Nemesis(ad, a.ops.split(","), rng, a.every, [float(x) for x in a.hold.split("-")])
    if a.ops != "none":
        nem.start()
    with ThreadPoolExecutor(16) as pool:                        # under fire, concurrently
        list(pool.map(submit, jobs))
    time.sleep(max(0, max(slots(j)[-1] for j in jobs) / 1000 - time.time()))
    nem.quit.set()
    if a.ops != "none":
        nem.join()
    grace = time.time() + a.grace                               # healed: everything must settle
    while time.time() < grace:
        done = {(h["job"], h["slot"]) for h in ad.list_runs() if not h["attempt"] and h["state"] in ("success", "dead", "skipped")}
        if all((j["name"], s) in done for j in jobs if j["ack"] == "ok" for s in slots(j)) and not ad.workers():
            break
        time.sleep(0.5)
    extra = [("store", x) for x in ad.integrity()] + [("leftover", "%s pid %d" % (r, p)) for p, r in ad.workers().items()]
    have = Counter(ad.list_jobs())
    extra += [("job-set", "%s x%d" % (j["name"], have[j["name"]])) for j in jobs if have[j["name"]] != 1 and j["ack"] == "ok" or have[j["name"]] > 1]
    for name, x in dict(jobs=jobs, history=ad.list_runs(), faults=nem.faults, extra=extra).items():
        json.dump(x, open("%s/%s.json" % (work, name), "w"))
    return judge(work, dict(eps=a.eps, takeover=a.takeover, recover=a.recover, min_faults=0 if a.ops == "none" else 1))


def judge(work, cfg):
    load = lambda n: json.load(open("%s/%s.json" % (work, n)))
    bodies, bad = read_ledger(work + "/ledger")
    r = check(load("jobs"), bodies, load("history"), load("faults"), cfg, load("extra"), bad)
    json.dump(r, open(work + "/report.json", "w"), indent=1)
    print(json.dumps({k: r[k] for k in ("verdict", "rules", "figures")}, indent=1))
    for x in r["violations"][:10]:
        print("  !", x)
    return {"valid": 0, "INVALID": 1}.get(r["verdict"], 2)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cmd", choices=["run", "check"])
    p.add_argument("out", help="directory for the evidence")
    for k, d in dict(adapter="nemesis:Jobctl", ops="kill-daemon,kill-node,pause,pause-node,term,kill-worker,all-down", hold="1-8", nodes=3, jobs=60, seconds=60, seed=1,
                     every=4.0, grace=40.0, eps=1.0, takeover=6.0, recover=2.0).items():
        p.add_argument("--" + k, type=type(d), default=d)
    a = p.parse_args()
    sys.exit(execute(a) if a.cmd == "run" else judge(a.out, dict(eps=a.eps, takeover=a.takeover, recover=a.recover)))


if __name__ == "__main__":
    main()
