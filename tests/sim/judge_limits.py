# SPDX-License-Identifier: Apache-2.0
# Replays the journal with all running and waiting runs, and checks limits, start order and fair shares.
import heapq
from collections import Counter, defaultdict

from judge_model import Rate

AGE = 60 * 1000000  # microseconds per point of priority
WEIGHT = 100        # the default weight of a queue
SCAN_MAX = 256      # runs of a lane that one claim examines without a start


class Lane:
    """The waiting runs of one owner in one queue, by job."""

    def __init__(self):
        self.waits, self.begun = [], 0
        self.jobs = defaultdict(dict)      # job → {number: wait}
        self.ends = []                     # heap of (to, number, job)

    def move(self, t):
        """Moves to time t: adds runs that are due before t, and removes those claimed or ended up to t."""
        while self.begun < len(self.waits) and self.waits[self.begun][0] < t:
            wait = self.waits[self.begun]
            self.jobs[wait[3]][self.begun] = wait
            heapq.heappush(self.ends, (wait[1], self.begun, wait[3]))
            self.begun += 1
        while self.ends and self.ends[0][0] <= t:
            _, number, job = heapq.heappop(self.ends)
            del self.jobs[job][number]
            if not self.jobs[job]:
                del self.jobs[job]


class Limits:
    def __init__(self, jobs, runs, pauses, events, fault):
        self.jobs, self.runs, self.pauses, self.events, self.fault_fn = jobs, runs, pauses, events, fault
        self.active = Counter()            # ("queue", name), ("owner", uid), (queue, uid), "all"
        self.limit, self.rate, self.used_until, self.weight = {}, {}, Counter(), {}
        self.room = next(e["room"] for e in events if e["e"] == "sim")
        self.owner_max = 0
        self.load = 0
        self.lanes = defaultdict(Lane)     # (queue, uid)
        for job in jobs.values():
            for run in job.runs:
                for since, to, due in run.waits():
                    if to > since:
                        self.lanes[job.queue, job.uid].waits.append((since, to, due, job.id, run))
        for lane in self.lanes.values():
            lane.waits.sort(key=lambda w: w[0])
        # A run that a newer run replaced in the same claim was counted as active during that claim.
        self.replaced_at = {run.row["ended"] for run in runs.values() if run.row["reason"] == "overlap"}
        self.cost = 0                      # cost of the checks so far; further checks are skipped while it is positive
        self.checks = {"turns": 0, "shares": 0, "room": 0}

    def fault(self, text, *what):
        self.fault_fn("limits", text, *what)

    # ---- replay ----

    def check(self):
        room_at = None
        for e in self.events:
            kind = e["e"]
            if room_at is not None and e["t"] != room_at["t"]:
                self.check_free_room(room_at["t"], room_at["order"])
                room_at = None
            self.cost -= 8
            if kind == "claim":
                self.claim(e)
            elif kind in ("end", "back"):
                self.count(self.jobs[self.runs[e["run"]].row["job"]], -1)
            elif kind == "limit":
                self.set_limit(e)
            elif kind == "node":
                self.room, self.owner_max = e["room"], e["owner_max"]
            elif kind == "load":
                self.load = e["load"]
            elif kind == "room":
                room_at = e if e["left"] else None
            if kind in ("limit", "node", "load", "pause", "resume", "down", "sleep", "late", "change"):
                room_at = None

    def count(self, job, n):
        for key in (("queue", job.queue), ("owner", job.uid), (job.queue, job.uid), "all"):
            self.active[key] += n

    def set_limit(self, e):
        key = (e["scope"], e["key"] if e["scope"] == "queue" else int(e["key"]))
        self.limit[key] = e["running"]
        if e["scope"] == "queue":
            self.weight[e["key"]] = e["weight"]
        old = self.rate.pop(key, None)
        if old:
            self.used_until[key] = old.strict  # a changed limit keeps the used part of the rate
        if e["n"]:
            self.rate[key] = Rate(e["n"], e["per"], e["burst"])
            self.rate[key].strict = self.used_until[key]

    # ---- limits ----

    def claim(self, e):
        job = self.jobs[e["job"]]
        shares = (("queue", job.queue), ("owner", job.uid))
        if self.cost <= 0:
            self.check_shares(e, job)
            self.check_order(e, job)
        self.count(job, 1)
        for key in shares:
            if self.limit.get(key) and self.active[key] > self.limit[key]:
                self.fault("%s %s has %d concurrent runs, %d allowed, at %d", *key, self.active[key], self.limit[key], e["t"])
        if self.owner_max and self.active["owner", job.uid] > self.owner_max:
            self.fault("owner %d has %d runs on the node, %d allowed, at %d", job.uid, self.active["owner", job.uid],
                       self.owner_max, e["t"])
        if self.active["all"] > self.room:
            self.fault("the node has %d runs, %d allowed, at %d", self.active["all"], self.room, e["t"])
        for what, rate in [(k, self.rate.get(k)) for k in shares] + [(("job", job.id), job.rate)]:
            if rate and not rate.allows(rate.loose, e["t"]):
                self.fault("%s %s exceeds its rate at %d", *what, e["t"])
            if rate:
                rate.take(e["t"])
        if job.when and self.load >= 4000:
            self.fault("run %d started on a loaded machine at %d", e["run"], e["t"])

    def full(self, key, t):
        if self.limit.get(key) and self.active[key] >= self.limit[key]:
            return True
        rate = self.rate.get(key)
        return rate is not None and not rate.allows(rate.strict, t)

    def closed(self, queue, uid, t):
        return self.full(("queue", queue), t) or self.full(("owner", uid), t) or (
            self.owner_max and self.active["owner", uid] >= self.owner_max)

    # ---- order and shares ----

    def free_runs(self, lane, t, order):
        """The runs of a lane that no policy of their job delays: (due time with priority, wait)."""
        for number, waits in lane.jobs.items():
            job = self.jobs[number]
            self.cost += 1
            if job.gated or self.pauses.stopped(job, t):
                continue
            policy = job.at(order)
            if any(p is not policy for p in job.around(t)):
                continue
            self.cost += len(waits)
            begun = [w for w in waits.values() if w[4].was_begun(t)]
            new = [w for w in waits.values() if not w[4].events or w[4].events[0]["t"] >= t]
            changed = len({p.permits for p in job.policies}) > 1
            if policy.permits and (len(begun) > policy.permits or changed and job.holding.count(t) > policy.permits):
                continue  # started with another overlap policy; the journal does not show which run has the permit
            if policy.permits:
                new = sorted(new, key=lambda w: w[4].row["slot"])[:max(0, policy.permits - job.holding.count(t))]
            for wait in begun + new:
                if not policy.too_late(wait[4].row, t):
                    yield wait[2] - policy.priority * AGE, wait

    def too_many(self, lane):
        """A claim may stop at this number of runs and continue with another lane."""
        return sum(map(len, lane.jobs.values())) >= SCAN_MAX

    def check_order(self, e, job):
        """No run of the same owner and queue with an earlier due time waits. A point of priority counts as a minute."""
        lane = self.lanes[job.queue, job.uid]
        mine = e["due"] - job.at(e["order"]).priority * AGE
        self.checks["turns"] += 1
        lane.move(e["t"])
        if self.too_many(lane):
            return
        for theirs, wait in self.free_runs(lane, e["t"], e["order"]):
            if theirs < mine and wait[4].row["run"] != e["run"]:
                self.fault("run %d (since %d) waits, but run %d started at %d", wait[4].row["run"], wait[0], e["run"], e["t"])

    def use(self, queue):
        return self.active["queue", queue], self.weight.get(queue, WEIGHT)

    def check_shares(self, e, job):
        """No run waits in a queue that uses less of its share, or of an owner with fewer runs in the same queue."""
        if e["t"] in self.replaced_at:
            return
        mine, my_weight = self.use(job.queue)
        self.checks["shares"] += 1
        for (queue, uid), lane in self.lanes.items():
            if (queue, uid) == (job.queue, job.uid):
                continue
            theirs, weight = self.use(queue)
            before = self.active[queue, uid] < self.active[job.queue, job.uid] if queue == job.queue else (
                theirs * my_weight < mine * weight)
            if not before or self.closed(queue, uid, e["t"]):
                continue
            lane.move(e["t"])
            if self.too_many(lane):
                continue
            for _, wait in self.free_runs(lane, e["t"], e["order"]):
                self.fault("run %d of queue %s, owner %d (%d of weight %d, %d of its owner) waited since %d, and run %d of "
                           "queue %s, owner %d (%d of weight %d, %d of its owner) started at %d", wait[4].row["run"], queue,
                           uid, theirs, weight, self.active[queue, uid], wait[0], e["run"], job.queue, job.uid, mine,
                           my_weight, self.active[job.queue, job.uid], e["t"])
                break

    def check_free_room(self, t, order):
        """After a claim that left free room, every waiting run has a reason to wait."""
        if self.cost > 0:
            return
        self.checks["room"] += 1
        for (queue, uid), lane in self.lanes.items():
            lane.move(t)
            if self.closed(queue, uid, t) or self.too_many(lane):
                continue
            for _, (since, to, _, number, run) in self.free_runs(lane, t, order):
                self.fault("run %d of job %d waits from %d to %d, with free room at %d", run.row["run"], number, since, to, t)
            for number, waits in lane.jobs.items():
                self.check_queue_length(self.jobs[number], waits, t)

    def check_queue_length(self, job, waits, t):
        """At most N runs wait behind a running run with --overlap queue:N."""
        policies = job.around(t)
        if len(policies) > 1 or policies[0].overlap != "queue" or job.gated or self.pauses.stopped(job, t):
            return
        new = [w for w in waits.values() if not w[4].events and not policies[0].too_late(w[4].row, t)]
        if len(new) > policies[0].waiting:
            self.fault("%d runs of job %d wait at %d, %d allowed", len(new), job.id, t, policies[0].waiting)
