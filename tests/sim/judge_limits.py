# SPDX-License-Identifier: Apache-2.0
# The course of a simulated life, with what was running and waiting at each moment: limits, turns, fairness.
import heapq
from collections import Counter, defaultdict

from judge_model import Rate

AGE = 60 * 1000000  # a point of priority
WEIGHT = 100        # of a queue that was given none
PATIENCE = 256      # runs of a lane that one claim looks at without a start


class Lane:
    """What waits in one queue for one owner, by job."""

    def __init__(self):
        self.waits, self.begun = [], 0
        self.jobs = defaultdict(dict)      # job → {number: wait}
        self.ends = []                     # heap of (to, number, job)

    def move(self, t):
        """Due before t, claimed or ended after it."""
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
        self.limit, self.rate, self.spoken_for, self.weight = {}, {}, Counter(), {}
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
        # Where one that was to start gave way to a newer one in the same claim, it had counted for a while.
        self.gave_way = {run.row["ended"] for run in runs.values() if run.row["reason"] == "overlap"}
        self.debt = 0                      # looks that were dear are paid off before the next one
        self.looks = {"turns": 0, "shares": 0, "room": 0}

    def fault(self, text, *what):
        self.fault_fn("limits", text, *what)

    # ---- the course of things ----

    def check(self):
        room_at = None
        for e in self.events:
            kind = e["e"]
            if room_at is not None and e["t"] != room_at["t"]:
                self.nobody_waits(room_at["t"], room_at["order"])
                room_at = None
            self.debt -= 8
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
            self.spoken_for[key] = old.strict  # a changed limit does not give back what was used
        if e["n"]:
            self.rate[key] = Rate(e["n"], e["per"], e["burst"])
            self.rate[key].strict = self.spoken_for[key]

    # ---- limits ----

    def claim(self, e):
        job = self.jobs[e["job"]]
        shares = (("queue", job.queue), ("owner", job.uid))
        if self.debt <= 0:
            self.fair(e, job)
            self.turn(e, job)
        self.count(job, 1)
        for key in shares:
            if self.limit.get(key) and self.active[key] > self.limit[key]:
                self.fault("%s %s has %d at a time, %d allowed, at %d", *key, self.active[key], self.limit[key], e["t"])
        if self.owner_max and self.active["owner", job.uid] > self.owner_max:
            self.fault("owner %d has %d on the node, %d allowed, at %d", job.uid, self.active["owner", job.uid],
                       self.owner_max, e["t"])
        if self.active["all"] > self.room:
            self.fault("the node has %d, room is for %d, at %d", self.active["all"], self.room, e["t"])
        for what, rate in [(k, self.rate.get(k)) for k in shares] + [(("job", job.id), job.rate)]:
            if rate and not rate.allows(rate.loose, e["t"]):
                self.fault("%s %s starts too fast at %d", *what, e["t"])
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

    # ---- whose turn ----

    def free_runs(self, lane, t, order):
        """Who of a lane could start, by all that is their own: (due with age, wait)."""
        for number, waits in lane.jobs.items():
            job = self.jobs[number]
            self.debt += 1
            if job.gated or self.pauses.stopped(job, t):
                continue
            policy = job.at(order)
            if any(p is not policy for p in job.around(t)):
                continue
            self.debt += len(waits)
            begun = [w for w in waits.values() if w[4].was_begun(t)]
            new = [w for w in waits.values() if not w[4].events or w[4].events[0]["t"] >= t]
            if policy.places and len(begun) > policy.places:
                continue  # begun while they might overlap: which of them has the place now does not show
            if policy.places:
                new = sorted(new, key=lambda w: w[4].row["slot"])[:max(0, policy.places - job.holding.count(t))]
            for wait in begun + new:
                if not policy.too_late(wait[4].row, t):
                    yield wait[2] - policy.priority * AGE, wait

    def tired(self, lane):
        """One claim may have looked at so many of them that it went on to others."""
        return sum(map(len, lane.jobs.values())) >= PATIENCE

    def turn(self, e, job):
        """Nobody of the same owner and queue waits who was due before, a point of priority counting a minute."""
        lane = self.lanes[job.queue, job.uid]
        mine = e["due"] - job.at(e["order"]).priority * AGE
        self.looks["turns"] += 1
        lane.move(e["t"])
        if self.tired(lane):
            return
        for theirs, wait in self.free_runs(lane, e["t"], e["order"]):
            if theirs < mine and wait[4].row["run"] != e["run"]:
                self.fault("run %d (since %d) was passed over by run %d at %d", wait[4].row["run"], wait[0], e["run"], e["t"])

    def use(self, queue):
        return self.active["queue", queue], self.weight.get(queue, WEIGHT)

    def fair(self, e, job):
        """No queue that uses less of its share, and no owner with less in the same queue, had somebody ready."""
        if e["t"] in self.gave_way:
            return
        mine, my_weight = self.use(job.queue)
        self.looks["shares"] += 1
        for (queue, uid), lane in self.lanes.items():
            if (queue, uid) == (job.queue, job.uid):
                continue
            theirs, weight = self.use(queue)
            before = self.active[queue, uid] < self.active[job.queue, job.uid] if queue == job.queue else (
                theirs * my_weight < mine * weight)
            if not before or self.closed(queue, uid, e["t"]):
                continue
            lane.move(e["t"])
            if self.tired(lane):
                continue
            for _, wait in self.free_runs(lane, e["t"], e["order"]):
                self.fault("run %d of queue %s, owner %d (%d of weight %d, %d of its owner) waited since %d, and run %d of "
                           "queue %s, owner %d (%d of weight %d, %d of its owner) started at %d", wait[4].row["run"], queue,
                           uid, theirs, weight, self.active[queue, uid], wait[0], e["run"], job.queue, job.uid, mine,
                           my_weight, self.active[job.queue, job.uid], e["t"])
                break

    def nobody_waits(self, t, order):
        """The claim at this moment left room: whoever still waits has a reason, and all that was due was looked at."""
        if self.debt > 0:
            return
        self.looks["room"] += 1
        for (queue, uid), lane in self.lanes.items():
            lane.move(t)
            if self.closed(queue, uid, t) or self.tired(lane):
                continue
            for _, (since, to, _, number, run) in self.free_runs(lane, t, order):
                self.fault("run %d of job %d waits since %d to %d, with room at %d", run.row["run"], number, since, to, t)
            for number, waits in lane.jobs.items():
                self.no_more_wait_than_may(self.jobs[number], waits, t)

    def no_more_wait_than_may(self, job, waits, t):
        """Behind the run that goes on, as --overlap queue:N allows."""
        policies = job.around(t)
        if len(policies) > 1 or policies[0].overlap != "queue" or job.gated or self.pauses.stopped(job, t):
            return
        new = [w for w in waits.values() if not w[4].events and not policies[0].too_late(w[4].row, t)]
        if len(new) > policies[0].waiting:
            self.fault("%d runs of job %d wait at %d, where %d may", len(new), job.id, t, policies[0].waiting)
