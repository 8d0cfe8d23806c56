# SPDX-License-Identifier: Apache-2.0
# Judges the journal of sim_life: what should have become of every slot, by code that shares nothing with the program.
import bisect
import json
import re
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone

SEC = 1000000
DAY = 86400 * SEC
GRACE = 2 * SEC
AGE = 60 * SEC
LOOK_AGAIN = 15 * SEC
LOST_MAX = 3
ALL_MAX = 1000
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
FINAL = {"succeeded", "failed", "timed_out", "cancelled", "lost", "skipped", "expired"}


def instant(text):
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()) * SEC


def duration(text):
    """30s, 10m, 1h, PT1H2M3S: microseconds."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    text = text.lower()[2:] if text.startswith("PT") else text
    return sum(int(n) * units[u] for n, u in re.findall(r"(\d+)([smhd])", text)) * SEC


# ---- slots ----

def field(text, low, high):
    found = set()
    for part in text.split(","):
        part, _, step = part.partition("/")
        for i, name in enumerate(WEEKDAYS):
            part = part.replace(name, str(i))
        if part == "*":
            first, last = low, high
        else:
            first, _, last = part.partition("-")
            first, last = int(first), int(last or first)
        found.update(range(first, last + 1, int(step or 1)))
    return found


def cron_slots(text, after, until):
    minute, hour, day, month, weekday = text.split()
    minutes, hours = sorted(field(minute, 0, 59)), sorted(field(hour, 0, 23))
    days, months, weekdays = field(day, 1, 31), field(month, 1, 12), {w % 7 for w in field(weekday, 0, 7)}
    date = datetime.fromtimestamp(after // SEC, timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    while date.timestamp() * SEC <= until:
        if date.day in days and date.month in months and date.isoweekday() % 7 in weekdays:
            base = int(date.timestamp())
            for h in hours:
                for m in minutes:
                    slot = (base + h * 3600 + m * 60) * SEC
                    if after < slot <= until:
                        yield slot
        date += timedelta(days=1)


def slots_of(text, after, until):
    every = re.fullmatch(r"(PT\S+) since (\S+)", text)
    if every:
        step, anchor = duration(every[1]), instant(every[2])
        return range(anchor + step * max(1, (after - anchor) // step + 1), until + 1, step)
    if re.match(r"\d{4}-", text):
        return [instant(text)]
    return cron_slots(text, after, until)


# ---- what was asked for ----

class Rate:
    """A token bucket, kept as the moment up to which starts are spoken for."""

    def __init__(self, n, per, burst):
        self.step, self.slack = per // n, per // n * (burst - 1)
        self.loose = self.strict = 0

    @staticmethod
    def parse(text):
        n, per, burst = re.fullmatch(r"(\d+)/([^:]+)(?::(\d+))?", text).groups()
        return Rate(int(n), duration(per), int(burst or n))

    def allows(self, bucket, t):
        return max(bucket, t) - t <= self.slack

    def take(self, t):
        self.loose = max(self.loose, t) + self.step
        self.strict = max(self.strict, t) + self.step


class Job:
    def __init__(self, event):
        spec = event["spec"]
        self.id, self.uid, self.made, self.spec = event["id"], event["uid"], event["t"], spec
        self.until = instant(spec["until"])
        texts = spec["schedule"]
        self.slots = sorted({s for text in texts for s in slots_of(text, self.made, self.until)})
        self.once = len(texts) == 1 and re.match(r"\d{4}-", texts[0]) is not None
        self.queue = spec.get("queue", "default")
        self.tags = {"%s=%s" % tag for tag in spec.get("tags", {}).items()}
        word, _, n = spec.get("catchup", "latest").partition(":")
        self.catchup, self.newest = word, int(n or ALL_MAX)
        word, _, n = spec.get("overlap", "skip").partition(":")
        self.overlap, self.waiting = word, int(n or 1)
        self.places = spec.get("max_running", 0) if word == "allow" else 1
        self.deadline, self.expires = spec.get("deadline", 0) * SEC, spec.get("expires", 0) * SEC
        self.retries = spec.get("retries", 0)
        self.backoff = spec.get("backoff", "exp:10s..10m")
        self.rerun = spec.get("on_lost", "rerun") == "rerun"
        self.run_timeout = spec.get("run_timeout", 0) * SEC
        self.rate = Rate.parse(spec["rate"]) if "rate" in spec else None
        self.when = bool(spec.get("when"))
        self.rules = {}
        for rule in filter(None, spec.get("on_exit", "").split(",")):
            codes, action = rule.split("=")
            self.rules.update({int(c): action for c in codes.split("|")})
        self.cancelled = None
        self.runs = []

    def action(self, code):
        return self.rules.get(code, "ok" if code == 0 else "retry") if code >= 0 else "retry"

    def delay(self, failures):
        """The shortest and the longest wait before the try after so many failures."""
        kind, _, rest = self.backoff.partition(":")
        if kind == "fixed":
            return duration(rest), duration(rest)
        base, cap = map(duration, rest.split(".."))
        return 0, min(cap, base << (failures - 1))


class Run:
    def __init__(self):
        self.row, self.claims, self.ends, self.attempts = None, [], [], []
        self.cancel_asked = None  # when
        self.replaced = None
        self.put_off = False      # its job has a rate or a condition

    def waits(self):
        """When it was queued and due: (from, to) with its due time."""
        row, events = self.row, sorted([(e["order"], e) for e in self.claims + self.ends])
        if self.put_off:
            # its due time moves while it waits, so that only its beginning is sure
            return [(row["slot"], self.claims[0]["t"] if self.claims else row["ended"], row["slot"])]
        since = max(row["slot"] if row["kind"] == "schedule" else row["made"], row["made"])
        found, due = [], row["slot"]
        for _, e in events:
            if e["e"] == "claim":
                found.append((max(since, e["due"]), e["t"], e["due"]))
                since = None
            else:
                since = e["t"]
        if since is not None and row["state"] in ("skipped", "expired", "cancelled"):
            found.append((max(since, min(row["due"], row["ended"])), row["ended"], row["due"] if events else due))
        return found


class Judge:
    def __init__(self, path):
        self.faults = []
        self.jobs, self.runs, self.events = {}, defaultdict(Run), []
        self.counts, self.states = {}, {}
        with open(path) as f:
            for order, line in enumerate(f):
                e = json.loads(line)
                e["order"] = order
                self.take(e)

    def fault(self, rule, text, *what):
        self.faults.append((rule, text % what))

    def take(self, e):
        kind = e["e"]
        if kind == "run":
            self.runs[e["run"]].row = e
        elif kind == "attempt":
            self.runs[e["run"]].attempts.append(e)
        elif kind == "count":
            self.counts[e["of"], e["state"]] = e["n"]
        elif kind == "jobend":
            self.states[e["id"]] = e["state"]
        else:
            self.events.append(e)
            if kind == "job":
                self.jobs[e["id"]] = Job(e)
            elif kind == "claim":
                self.runs[e["run"]].claims.append(e)
            elif kind in ("end", "back"):
                self.runs[e["run"]].ends.append(e)
            elif kind in ("cancel", "replaced"):
                run = self.runs[e["run"]]
                run.cancel_asked = min(run.cancel_asked or e["t"], e["t"])
                if kind == "replaced":
                    run.replaced = e["t"]
            elif kind == "jobcancel":
                self.jobs[e["job"]].cancelled = e["t"]
            elif kind == "done":
                self.done = e

    def judge(self):
        for run in list(self.runs.values()):
            if run.row is None:
                self.fault("rows", "a claim names a run that has no row: %s", run.claims[:1])
                continue
            job = self.jobs[run.row["job"]]
            job.runs.append(run)
            run.put_off = bool(job.rate or job.when)
        if self.faults:
            return
        self.pauses = Pauses(self)
        self.stretches()
        for job in self.jobs.values():
            self.each_slot_once(job)
            for run in job.runs:
                Replay(self, job, run).check()
            self.places(job)
        for job in self.jobs.values():
            for run in job.runs:
                self.outcome(job, run)
        Limits(self).check()
        self.kept_counts()

    # ---- every slot has one outcome ----

    def each_slot_once(self, job):
        known = set(job.slots)
        seen = Counter()
        stop = job.cancelled if job.cancelled else job.until
        for run in job.runs:
            row = run.row
            if row["state"] not in FINAL:
                self.fault("open", "run %d of job %d is %s (%s) in the end", row["run"], job.id, row["state"], row["reason"])
            if row["kind"] != "schedule":
                continue
            first, last = bisect.bisect_left(job.slots, row["slot"]), bisect.bisect_right(job.slots, row["last"])
            covered = job.slots[first:last]
            if row["slot"] not in known or row["last"] not in known or len(covered) != row["count"]:
                self.fault("slots", "run %d of job %d is for %d slots from %d to %d, where %d are", row["run"], job.id,
                           row["count"], row["slot"], row["last"], len(covered))
            if row["count"] > 1 and (row["state"], row["reason"]) != ("skipped", "missed"):
                self.fault("slots", "run %d stands for %d slots and is %s", row["run"], row["count"], row["state"])
            seen.update(covered)
            is_missed = (row["state"], row["reason"]) == ("skipped", "missed")
            for slot in covered:
                want = self.missed.get((job.id, slot), "run")
                if want != "either" and is_missed != (want == "missed"):
                    self.fault("catch-up", "job %d (%s:%d), slot %d: %s, should %sbe missed", job.id, job.catchup,
                               job.newest, slot, (row["state"], row["reason"]), "" if want == "missed" else "not ")
        for slot in job.slots:
            if seen[slot] > 1 or (seen[slot] == 0 and slot <= stop):
                self.fault("slots", "slot %d of job %d has %d rows", slot, job.id, seen[slot])
        over = job.cancelled and all(r.row["ended"] <= job.cancelled for r in job.runs) and (
            not job.slots or job.slots[-1] <= job.cancelled)
        want = {"finished", "cancelled"} if over else {"cancelled"} if job.cancelled else {"finished"}
        if self.states[job.id] not in want:
            self.fault("jobs", "job %d is %s in the end", job.id, self.states[job.id])

    def stretches(self):
        """For each time nobody was there: which slots are missed, by the job's word."""
        self.missed = {}
        gone = None
        for e in self.events:
            if e["e"] in ("down", "sleep"):
                gone = e["t"]
            elif e["e"] == "late" and gone is not None:
                for job in self.jobs.values():
                    self.stretch(job, e["since"], gone, e["t"])
                gone = None
            elif e["e"] == "awake":
                pass

    def stretch(self, job, since, gone, back):
        if job.made > gone or (job.cancelled and job.cancelled <= gone):
            return
        first, last = bisect.bisect_right(job.slots, gone), bisect.bisect_right(job.slots, back)
        for slot in job.slots[bisect.bisect_right(job.slots, since):first]:
            self.missed[job.id, slot] = "either"  # it waited when the last sign of life was given
        for i in range(first, last):
            slot, rank = job.slots[i], last - 1 - i
            if job.once:
                runs = True
            elif job.catchup == "none":
                runs = back - slot <= GRACE
            elif job.catchup == "latest":
                runs = rank == 0 and back - slot <= DAY
            else:
                runs = rank < job.newest
            late = back - slot > GRACE
            self.missed[job.id, slot] = "run" if runs else "missed" if late else "either"

    # ---- places ----

    def places(self, job):
        """No two runs have the same place; what they hold is kept for the judgement of skipped ones."""
        job.holds = []  # (from, to, run): it may have had a place then
        changes = []
        for run in job.runs:
            events = sorted(run.claims + run.ends, key=lambda e: e["order"])
            if not events or job.places == 0:
                continue
            job.holds.append((events[0]["t"], run.row["ended"] or 1 << 62, run.row["run"]))
            if run.row["forced"]:
                continue
            begin = None
            for e in events:
                if e["e"] == "claim" and begin is None:
                    begin = e["order"]
                elif e["e"] == "back" and all(x["e"] != "end" or x["order"] > e["order"] for x in events):
                    changes += [(begin, 1), (e["order"], -1)]
                    begin = None
            if begin is not None:
                last = events[-1]
                over = last["order"] if last["e"] == "end" and last["became"] != "queued" else self.order_at(run.row["ended"])
                changes += [(begin, 1), (over, -1)]
        busy = 0
        for order, change in sorted(changes, key=lambda c: (c[0], c[1])):
            busy += change
            if busy > job.places:
                self.fault("places", "job %d has %d runs at a time, %d allowed, at line %d", job.id, busy, job.places, order)
                break

    def order_at(self, t):
        """The line before which everything up to and with moment t stands."""
        if not hasattr(self, "times"):
            self.times = [e["t"] for e in self.events]
        at = bisect.bisect_left(self.times, t)
        return self.events[at]["order"] - 0.5 if at < len(self.events) else 1 << 62

    def holders(self, job, t, but):
        return sum(1 for a, b, run in job.holds if a <= t <= b and run != but)

    # ---- outcomes of those that did not start ----

    def outcome(self, job, run):
        row, t = run.row, run.row["ended"]
        reason = row["reason"]
        ok = True
        if row["state"] == "skipped":
            ok = not any(e["e"] == "end" for e in run.ends) and self.skip_is_right(job, run, reason, t)
        elif row["state"] == "expired":
            word = reason.split(" ")[0]
            limit = {"deadline": job.deadline, "expires": job.expires}.get(word, 0)
            ok = limit and t > row["slot"] + limit and (word == "expires" or row["attempt"] == 0)
        elif row["state"] == "cancelled":
            ok = run.cancel_asked is not None or (job.cancelled is not None and job.cancelled <= t) or (
                reason == "replaced" and job.overlap == "replace" and self.newer_due(job, row, t))
        if not ok:
            self.fault("outcome", "run %d of job %d (%s): %s (%s) at %d does not follow", row["run"], job.id,
                       job.spec.get("overlap", "skip"), row["state"], reason, t)

    def newer_due(self, job, row, t):
        return any(r.row["slot"] > row["slot"] and max(r.row["slot"], r.row["made"]) <= t for r in job.runs)

    def skip_is_right(self, job, run, reason, t):
        row = run.row
        if reason == "missed":
            return not run.claims
        if reason in ("paused", "frozen"):
            return row["kind"] == "schedule" and self.pauses.stops(job, t, reason)
        if reason == "overlap":
            if job.overlap == "replace":
                return self.newer_due(job, row, t)
            return job.overlap == "skip" and self.holders(job, t, row["run"]) >= job.places
        if reason == "limit":
            others = sum(1 for r in job.runs if r is not run and any(a <= t <= b for a, b, _ in r.waits()))
            return job.overlap == "queue" and self.holders(job, t, row["run"]) >= 1 and others >= job.waiting
        if reason == "condition":
            return job.when and self.newer_due(job, row, t)
        return False

    # ---- the store's own counts ----

    def kept_counts(self):
        found = Counter(r.row["state"] for r in self.runs.values())
        jobs = Counter(self.states.values())
        for (of, state), n in self.counts.items():
            if n != (found if of == "run" else jobs)[state]:
                self.fault("counts", "%s %s: %d kept, %d there are", of, state, n, (found if of == "run" else jobs)[state])
        if self.done["spins"] > 10 + self.done["claims"] // 50:
            self.fault("claims", "%d of %d claims were for nothing", self.done["spins"], self.done["claims"])


class Pauses:
    """What was paused when."""

    def __init__(self, judge):
        self.of_job = defaultdict(list)   # job → [from, to]
        self.scopes = []                  # [scope, key, uid, spared, from, to]
        for e in judge.events:
            if e["e"] == "pause":
                self.begin(e)
            elif e["e"] == "resume":
                self.end(e)
            elif e["e"] == "end" and e.get("paused"):
                self.of_job[e["job"]].append([e["t"], 1 << 62])

    def begin(self, e):
        until = e["until"] or 1 << 62
        if e["scope"] == "job":
            self.end(e)  # the later word counts
            self.of_job[e["job"]].append([e["t"], until])
        else:
            self.end(dict(e))
            self.scopes.append([e["scope"], e["key"], e["uid"], e["spared"], e["t"], until])

    def end(self, e):
        if e["scope"] == "job":
            for span in self.of_job[e["job"]]:
                span[1] = min(span[1], e["t"])
        else:
            for s in self.scopes:
                if s[:3] == [e["scope"], e["key"], e["uid"]]:
                    s[5] = min(s[5], e["t"])

    def stops(self, job, t, reason):
        """Touching moments count: what happened first at that moment nobody can tell from outside."""
        if reason == "paused" and any(a <= t <= b for a, b in self.of_job[job.id]):
            return True
        return any(a <= t <= b and (s[0] == "freeze") == (reason == "frozen") and self.covers(s, job)
                   for s in self.scopes for a, b in [s[4:6]])

    def surely(self, job, t):
        """Stopped at this moment, and not only on its edge."""
        return any(a < t < b for a, b in self.of_job[job.id]) or any(
            s[4] < t < s[5] and self.covers(s, job) for s in self.scopes)

    def frozen(self, job, t):
        return any(s[4] < t < s[5] and s[0] == "freeze" and self.covers(s, job) for s in self.scopes)

    @staticmethod
    def covers(s, job):
        scope, key, uid, spared = s[:4]
        if uid >= 0 and uid != job.uid:
            return False
        return {"all": True, "queue": key == job.queue, "owner": key == str(job.uid), "tag": key in job.tags,
                "freeze": not spared or spared not in job.tags}[scope]


class Replay:
    """The attempts of one run, held against the retry policy."""

    def __init__(self, judge, job, run):
        self.judge, self.job, self.run = judge, job, run
        self.failures = self.lost = self.ended = 0
        self.first_start, self.dead = None, False

    def fault(self, text, *what):
        self.judge.fault("retries", "run %d of job %d: " + text, self.run.row["run"], self.job.id, *what)

    def check(self):
        row = self.run.row
        events = sorted(self.run.claims + self.run.ends, key=lambda e: e["order"])
        want, due = "claim", None
        for e in events:
            if (e["e"] == "claim") != (want == "claim"):
                self.fault("%s at %d, where a %s was to come", e["e"], e["t"], want)
                return
            if e["e"] == "claim":
                self.claim(e, due)
                want = "end"
            elif e["e"] == "back":
                want, due = "claim", None
            else:
                state, due = self.end(e)
                if e["became"] not in state:
                    self.fault("%s at %d (exit code %d) made it %s, not %s", e["outcome"], e["t"], e["code"], e["became"],
                               " or ".join(sorted(state)))
                if e["became"] != "queued" and row["state"] != e["became"]:
                    self.fault("is %s, but ended as %s", row["state"], e["became"])
                want = "claim" if e["became"] == "queued" else "nothing"
        if row["state"] in ("succeeded", "failed", "timed_out", "lost") and want != "nothing":
            self.fault("is %s without an end", row["state"])
        self.totals()

    def totals(self):
        row = self.run.row
        for name, n in (("failures", self.failures), ("lost", self.lost), ("attempt", self.ended)):
            if row[name] != n:
                self.fault("%s is %d, not %d", name, row[name], n)
        if bool(row["dead"]) != self.dead:
            self.fault("%s a dead letter (%s)", "is" if row["dead"] else "is not", row["reason"])
        if len(self.run.attempts) != self.ended:
            self.fault("has %d rows of attempts, not %d", len(self.run.attempts), self.ended)

    def claim(self, e, due):
        job = self.job
        if e["t"] < e["due"]:
            self.fault("claimed at %d, before it was due at %d", e["t"], e["due"])
        if due and not due[0] <= e["due"] <= max(due[1], e["due"] if job.rate or job.when else 0):
            self.fault("tried again at %d, not between %d and %d", e["due"], *due)
        if e["attempt"] == 0 and job.deadline and e["t"] > e["slot"] + job.deadline:
            self.fault("started %d after its deadline", e["t"] - e["slot"] - job.deadline)
        if job.expires and e["t"] > e["slot"] + job.expires:
            self.fault("started %d after it had expired", e["t"] - e["slot"] - job.expires)
        pauses = self.judge.pauses
        if pauses.surely(job, e["t"]) and (not e["forced"] or pauses.frozen(job, e["t"])):
            self.fault("claimed at %d while it was stopped", e["t"])

    def again(self, e, low, high):
        """Queued again, unless it is not wanted any more or its time would be over."""
        job, run = self.job, self.run
        states = {"queued"}
        if (run.cancel_asked is not None and run.cancel_asked <= e["t"]) or (job.cancelled and job.cancelled <= e["t"]):
            return {"cancelled"}, None
        if job.run_timeout and self.first_start is not None:
            over = self.first_start + job.run_timeout
            if e["t"] + low >= over:
                return {"timed_out"}, None
            if e["t"] + high >= over:
                states = {"queued", "timed_out"}
        return states, (e["t"] + low, e["t"] + high)

    def failure(self, e, state):
        job = self.job
        self.failures += 1
        if state == "timed_out" and job.run_timeout and e["t"] >= self.first_start + job.run_timeout:
            return {"timed_out"}, None
        if self.failures <= job.retries:
            return self.again(e, *job.delay(self.failures))
        self.dead = job.retries > 0
        return {state}, None

    def end(self, e):
        """The states that may follow, and when it is tried again."""
        job, outcome = self.job, e["outcome"]
        self.ended += 1
        if self.first_start is None and e["began"]:
            self.first_start = e["began"]
        if outcome == "cancelled":
            return {"cancelled"}, None
        if outcome == "timed_out":
            return self.failure(e, "timed_out")
        if outcome == "not_started":
            return self.failure(e, "failed")
        if outcome == "lost":
            self.lost += 1
            asked = self.run.cancel_asked is not None and self.run.cancel_asked <= e["t"]
            if asked or (job.rerun and self.lost <= LOST_MAX):
                return self.again(e, 0, 0)
            return {"lost"}, None
        action = job.action(e["code"])
        if action == "ok":
            return {"succeeded"}, None
        if action == "retry":
            return self.failure(e, "failed")
        self.failures += 1
        self.dead = action == "dead"
        return {"failed"}, None


class Limits:
    """The course of things, with what was running at each moment."""

    def __init__(self, judge):
        self.judge = judge
        self.active = Counter()            # ("queue", name), ("owner", uid), "all"
        self.limit, self.rate, self.spoken_for = {}, {}, Counter()
        self.room = next(e["room"] for e in judge.events if e["e"] == "sim")
        self.owner_max = 0
        self.load, self.loaded_at = 0, -1 << 62
        self.lanes = defaultdict(list)     # (queue, uid) → waits, by when they began
        self.now_waiting = defaultdict(dict)
        for job in judge.jobs.values():
            for run in job.runs:
                for since, to, due in run.waits():
                    if to > since:
                        self.lanes[job.queue, job.uid].append((since, to, due, job, run))
        for lane in self.lanes.values():
            lane.sort(key=lambda w: w[0])
        self.begun = Counter()
        self.longest = 0

    def waiting(self, key, t):
        """Who waits in this lane at this moment: due before it, claimed or ended after it."""
        lane, here = self.lanes[key], self.now_waiting[key]
        while self.begun[key] < len(lane) and lane[self.begun[key]][0] < t:
            wait = lane[self.begun[key]]
            here[id(wait)] = wait
            self.begun[key] += 1
        for k in [k for k, w in here.items() if w[1] <= t]:
            del here[k]
        return here.values()

    def check(self):
        room_at = None
        for e in self.judge.events:
            if room_at and e["t"] != room_at["t"]:
                self.nobody_waits(room_at["t"])
                room_at = None
            kind = e["e"]
            if kind == "claim":
                self.claim(e)
            elif kind in ("end", "back"):
                job = self.judge.jobs[self.judge.runs[e["run"]].row["job"]]
                for key in (("queue", job.queue), ("owner", job.uid), "all"):
                    self.active[key] -= 1
            elif kind == "limit":
                self.set_limit(e)
            elif kind == "node":
                self.room, self.owner_max = e["room"], e["owner_max"]
                room_at = None
            elif kind == "load":
                if self.load >= 4000:
                    self.loaded_at = e["t"]
                self.load = e["load"]
                room_at = None
            elif kind == "room":
                room_at = e if e["left"] else None
            if kind in ("limit", "pause", "resume", "down", "sleep", "late"):
                room_at = None

    def set_limit(self, e):
        key = (e["scope"], e["key"] if e["scope"] == "queue" else int(e["key"]))
        self.limit[key] = e["running"]
        old = self.rate.pop(key, None)
        if old:
            self.spoken_for[key] = old.strict  # a changed limit does not give back what was used
        if e["n"]:
            self.rate[key] = Rate(e["n"], e["per"], e["burst"])
            self.rate[key].strict = self.spoken_for[key]

    def claim(self, e):
        job = self.judge.jobs[e["job"]]
        shares = (("queue", job.queue), ("owner", job.uid))
        for key in (*shares, "all"):
            self.active[key] += 1
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
        self.turn(e, job)

    def turn(self, e, job):
        """Nobody of the same owner and queue waits who was due before, a point of priority counting a minute."""
        row = self.judge.runs[e["run"]].row
        mine = e["due"] - row["prio"] * AGE
        for since, to, due, other, run in self.waiting((job.queue, job.uid), e["t"]):
            theirs = due - run.row["prio"] * AGE
            if theirs < mine and to > e["t"] and not self.stands_in_its_own_way(other, run, e["t"]):
                self.fault("run %d (since %d) was passed over by run %d at %d", run.row["run"], since, e["run"], e["t"])

    def stands_in_its_own_way(self, job, run, t):
        if job.rate or job.when:
            return True
        if self.judge.pauses.stops(job, t, "paused") or self.judge.pauses.stops(job, t, "frozen"):
            return True
        if job.places == 0:
            return False
        before = sum(1 for r in job.runs if r.row["slot"] < run.row["slot"] and any(a <= t <= b for a, b, _ in r.waits()))
        return self.judge.holders(job, t, run.row["run"]) + before >= job.places

    def full(self, key, t):
        if self.limit.get(key) and self.active[key] >= self.limit[key]:
            return True
        rate = self.rate.get(key)
        return rate is not None and not rate.allows(rate.strict, t)

    def nobody_waits(self, t):
        """The claim at this moment left room: whoever still waits has a reason."""
        for key in list(self.lanes):
            queue, uid = key
            for since, to, due, job, run in self.waiting(key, t):
                if to <= t or self.full(("queue", queue), t) or self.full(("owner", uid), t):
                    continue
                if self.owner_max and self.active["owner", uid] >= self.owner_max:
                    continue
                if not self.stands_in_its_own_way(job, run, t):
                    self.fault("run %d of job %d waits since %d to %d, with room at %d", run.row["run"], job.id, since, to, t)

    def fault(self, text, *what):
        self.judge.fault("limits", text, *what)


def main():
    judge = Judge(sys.argv[1])
    judge.judge()
    states = Counter((r.row["state"], re.sub(r"[ \d].*", "", r.row["reason"])) for r in judge.runs.values() if r.row)
    slots = sum(len(j.slots) for j in judge.jobs.values())
    downs = Counter(e["how"] for e in judge.events if e["e"] == "down")
    print("# %d jobs, %d slots, %d runs, %d attempts, %d batches; %s" % (
        len(judge.jobs), slots, len(judge.runs), sum(len(r.attempts) for r in judge.runs.values()),
        judge.done["batches"], ", ".join("%d %s" % (n, how) for how, n in sorted(downs.items()))))
    print("# " + ", ".join("%s%s %d" % (s, " (%s)" % r if r else "", n) for (s, r), n in sorted(states.items())))
    for rule, n in sorted(Counter(rule for rule, _ in judge.faults).items()):
        print("# %d times against the rule of %s:" % (n, rule))
        for _, text in [f for f in judge.faults if f[0] == rule][:5]:
            print("#   " + text)
    sys.exit(bool(judge.faults))


main()
