# SPDX-License-Identifier: Apache-2.0
# The jobs, runs and pauses of a journal.
import bisect
import re
from collections import defaultdict

from judge_slots import SEC, duration, instant, slots_of

ALL_MAX = 1000
NEVER = 1 << 62


class Spans:
    """A set of time spans. The methods tell whether, and how many, spans include a time."""

    def __init__(self, spans):
        spans = sorted(spans)
        self.begins = [a for a, _ in spans]
        self.ends = sorted(b for _, b in spans)
        self.furthest, far = [], -NEVER
        for _, b in spans:
            far = max(far, b)
            self.furthest.append(far)

    def touches(self, t):
        i = bisect.bisect_right(self.begins, t)
        return i > 0 and self.furthest[i - 1] >= t

    def has_inside(self, t):
        i = bisect.bisect_left(self.begins, t)
        return i > 0 and self.furthest[i - 1] > t

    def count(self, t):
        return bisect.bisect_right(self.begins, t) - bisect.bisect_left(self.ends, t)


class Rate:
    """A token bucket, stored as the time up to which the rate is used."""

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


class Policy:
    """A definition of a job, valid from a line of the journal up to the next definition."""

    def __init__(self, order, since, spec):
        self.order, self.since, self.spec = order, since, spec
        word, _, n = spec.get("catchup", "latest").partition(":")
        self.catchup, self.newest = word, int(n or ALL_MAX)
        word, _, n = spec.get("overlap", "skip").partition(":")
        self.overlap, self.waiting = word, int(n or 1)
        self.permits = spec.get("max_running", 0) if word == "allow" else 1
        self.deadline, self.expires = spec.get("deadline", 0) * SEC, spec.get("expires", 0) * SEC
        self.jitter = spec.get("jitter", 0) * SEC
        self.retries = spec.get("retries", 0)
        self.backoff = spec.get("backoff", "exp:10s..10m")
        self.rerun = spec.get("on_lost", "rerun") == "rerun"
        self.run_timeout = spec.get("run_timeout", 0) * SEC
        self.priority = spec.get("priority", 0)
        self.schedule = [text for text in spec.get("schedule", []) if text != "manual"]
        self.once = len(self.schedule) == 1 and re.match(r"\d{4}-", self.schedule[0]) is not None
        self.rules = {}
        for rule in filter(None, spec.get("on_exit", "").split(",")):
            codes, action = rule.split("=")
            self.rules.update({int(c): action for c in codes.split("|")})

    def too_late(self, row, t):
        return (self.deadline and t > row["slot"] + self.deadline) or (self.expires and t > row["slot"] + self.expires)

    def same_slots(self, other):
        return all(self.spec.get(k) == other.spec.get(k) for k in ("schedule", "tz", "until", "jitter"))

    def action(self, code):
        return self.rules.get(code, "ok" if code == 0 else "retry") if code >= 0 else "retry"

    def delay(self, failures):
        """The shortest and the longest delay of a retry after this number of failures."""
        kind, _, rest = self.backoff.partition(":")
        if kind == "fixed":
            return duration(rest), duration(rest)
        base, cap = map(duration, rest.split(".."))
        return 0, min(cap, base << (failures - 1))


class Link:
    """A link of a job to another one that it runs after: NUMBER[:success|failure|any|exit=N]."""

    def __init__(self, text):
        parent, _, when = text.partition(":")
        self.parent, self.when = int(parent), when or "success"

    def holds(self, state, code):
        failed = state in ("failed", "timed_out", "lost")
        if self.when.startswith("exit="):
            return (failed or state == "succeeded") and code == int(self.when[5:])
        return state == "succeeded" and self.when != "failure" or failed and self.when != "success"


class Job:
    def __init__(self, event):
        spec = event["spec"]
        self.id, self.uid, self.made = event["id"], event["uid"], event["t"]
        self.policies = [Policy(event["order"], event["t"], spec)]
        self.until = instant(spec["until"])
        self.queue = spec.get("queue", "default")
        self.tags = {"%s=%s" % tag for tag in spec.get("tags", {}).items()}
        self.rate = Rate.parse(spec["rate"]) if "rate" in spec else None
        self.when = bool(spec.get("when"))
        self.gated = bool(self.rate or self.when)
        self.links = [Link(text) for text in spec.get("after", [])]
        self.joins = spec.get("after_mode", "all") == "all"
        self.cancelled = None
        self.cancelled_unplanned = None  # start of the unplanned absence in which the job was cancelled
        self.runs = []

    def change(self, event):
        self.policies.append(Policy(event["order"], event["t"], event["spec"]))

    def at(self, order):
        """The definition that is valid at a line of the journal."""
        if len(self.policies) == 1:
            return self.policies[0]
        return self.policies[max(0, bisect.bisect_right([p.order for p in self.policies], order) - 1)]

    def around(self, t):
        """The definitions that are valid at time t. At the time of a change both count, because the order is not known."""
        return [p for i, p in enumerate(self.policies)
                if p.since <= t and (i + 1 == len(self.policies) or t <= self.policies[i + 1].since)]

    def find_slots(self):
        """Computes the slots: those of the old schedule up to a change, then those of the new one."""
        found, begin = set(), 0
        for i, p in enumerate(self.policies):
            if i + 1 < len(self.policies) and p.same_slots(self.policies[i + 1]):
                continue
            end = self.policies[i + 1].since if i + 1 < len(self.policies) else self.until
            for text in p.schedule:
                found.update(slots_of(text, p.spec.get("tz", "UTC"), max(begin, self.made), min(end, self.until)))
            begin = end
        self.slots = sorted(found)

    def index(self):
        """Prepares the spans for holders() and the waiting runs."""
        self.by_slot = sorted(self.runs, key=lambda r: r.row["slot"])
        self.slot_keys = [r.row["slot"] for r in self.by_slot]
        self.waits = Spans([(a, b) for r in self.runs for a, b, _ in r.waits()])
        self.holding = Spans([r.hold for r in self.runs if r.hold])

    def holders(self, t, but):
        """The number of other runs that may have held a permit at time t."""
        return self.holding.count(t) - bool(but.hold and but.hold[0] <= t <= but.hold[1])

    def newer_due(self, run, t):
        """True if a run of a later slot is due, or a later due run, because jitter can exceed the distance of two slots."""
        jitter = max(p.jitter for p in self.policies)
        i = bisect.bisect_right(self.slot_keys, run.row["slot"] - jitter)
        while i < len(self.by_slot) and self.slot_keys[i] <= t:
            other = self.by_slot[i]
            newer = self.slot_keys[i] > run.row["slot"] or other.first_due() > run.first_due()
            if newer and other.row["made"] <= t:
                return True
            i += 1
        return False


class Run:
    __slots__ = ("row", "events", "attempts", "cancel_asked", "gated", "hold", "found", "started", "steps")

    def __init__(self):
        self.row, self.events, self.attempts = None, [], 0
        self.cancel_asked = None  # time of the request
        self.gated = False        # the job has a rate or a condition
        self.started = None       # the first recorded start
        self.hold = self.found = None
        self.steps = 0            # as stored last

    def claims(self):
        return [e for e in self.events if e["e"] == "claim"]

    def first_due(self):
        return self.events[0]["due"] if self.events else self.row["due"]

    def was_begun(self, t):
        """True if an attempt has ended before t. The run keeps its permit while it waits for a retry."""
        return any(e["e"] == "end" and e["t"] < t for e in self.events)

    def waits(self):
        """The times at which the run was queued and due: (from, to, due time)."""
        if self.found is None:
            self.found = self.find_waits()
        return self.found

    def find_waits(self):
        row = self.row
        if self.gated:
            # the due time changes while the run waits, so only the start is known
            claims = self.claims()
            return [(row["slot"], claims[0]["t"] if claims else row["ended"], row["slot"])]
        since = max(row["slot"] if row["kind"] == "schedule" else row["made"], row["made"])
        found = []
        for e in self.events:
            if e["e"] == "claim":
                found.append((max(since, e["due"]), e["t"], e["due"]))
                since = None
            else:
                since = e["t"]
        if since is not None and row["state"] in ("skipped", "expired", "cancelled"):
            found.append((max(since, min(row["due"], row["ended"])), row["ended"], row["due"]))
        return found


class Pauses:
    """All pauses with their times."""

    def __init__(self, events):
        self.of_job = defaultdict(list)   # job → [from, to]
        self.scopes = []                  # [scope, key, uid, spared, from, to]
        self.spans = {}                   # (job, "paused" or "frozen") → Spans
        for e in events:
            if e["e"] == "pause":
                self.begin(e)
            elif e["e"] == "resume":
                self.end(e)
            elif e["e"] == "end" and e.get("paused"):
                self.of_job[e["job"]].append([e["t"], NEVER])

    def begin(self, e):
        until = e["until"] or NEVER
        self.end(e)  # a later pause replaces an earlier one
        if e["scope"] == "job":
            self.of_job[e["job"]].append([e["t"], until])
        else:
            self.scopes.append([e["scope"], e["key"], e["uid"], e["spared"], e["t"], until])

    def end(self, e):
        if e["scope"] == "job":
            for span in self.of_job[e["job"]]:
                span[1] = min(span[1], e["t"])
        else:
            for s in self.scopes:
                if s[:3] == [e["scope"], e["key"], e["uid"]]:
                    s[5] = min(s[5], e["t"])

    def of(self, job, word):
        """The spans in which this job was paused, or frozen."""
        if (job.id, word) not in self.spans:
            spans = [tuple(s[4:6]) for s in self.scopes if (s[0] == "freeze") == (word == "frozen") and self.covers(s, job)]
            if word == "paused":
                spans += [tuple(s) for s in self.of_job[job.id]]
            self.spans[job.id, word] = Spans(spans)
        return self.spans[job.id, word]

    def stops(self, job, t, word):
        """True if the job was paused at t. The ends of a pause count, because the order of events at that time is not known."""
        return self.of(job, word).touches(t)

    def stopped(self, job, t):
        return self.stops(job, t, "paused") or self.stops(job, t, "frozen")

    def surely(self, job, t):
        """True if the job was paused at t and t is not the start or end of a pause."""
        return self.of(job, "paused").has_inside(t) or self.of(job, "frozen").has_inside(t)

    def frozen(self, job, t):
        return self.of(job, "frozen").has_inside(t)

    @staticmethod
    def covers(s, job):
        scope, key, uid, spared = s[:4]
        if uid >= 0 and uid != job.uid:
            return False
        return {"all": True, "queue": key == job.queue, "owner": key == str(job.uid), "tag": key in job.tags,
                "freeze": not spared or spared not in job.tags}[scope]
