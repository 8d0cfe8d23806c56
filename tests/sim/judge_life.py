# SPDX-License-Identifier: Apache-2.0
# Checks the journal of sim_life: computes the expected outcome of every slot, without code of the program.
import bisect
import json
import re
import sys
from collections import Counter, defaultdict

from judge_limits import Limits
from judge_model import NEVER, Job, Pauses, Run
from judge_slots import SEC

DAY = 86400 * SEC
GRACE = 2 * SEC
LOOKAHEAD = 5 * SEC
LOST_MAX = 3
SLACK = SEC // 10  # timers of the simulation fire some milliseconds late
FINAL = {"succeeded", "failed", "timed_out", "cancelled", "lost", "skipped", "expired"}


class Judge:
    def __init__(self, path):
        self.faults = []
        self.jobs, self.runs, self.events = {}, defaultdict(Run), []
        self.counts, self.states = {}, {}
        self.ups = []             # lines at which a daemon started
        self.last_seen = 0
        self.wrong_states = []
        self.filled = 0           # attempts that began with a stored state
        self.away = None          # start of an absence whose slots are not planned yet
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
            self.runs[e["run"]].attempts += 1
        elif kind == "count":
            self.counts[e["of"], e["state"]] = e["n"]
        elif kind == "jobend":
            self.states[e["id"]] = e["state"]
        else:
            self.events.append(e)
            if kind in ("claim", "end", "back"):
                self.runs[e["run"]].events.append(e)
            elif kind in ("save", "fill"):
                self.state_moves(self.runs[e["run"]], e)
            else:
                self.take_other(kind, e)

    def state_moves(self, run, e):
        """Each attempt begins with the state that was stored last."""
        if e["e"] == "save":
            run.steps = e["steps"]
            return
        self.filled += e["steps"] > 0
        if e["steps"] != run.steps:
            self.wrong_states.append(("state", "run %d begins an attempt with %d steps, %d were stored" % (e["run"], e["steps"], run.steps)))

    def take_other(self, kind, e):
        if kind == "job":
            self.jobs[e["id"]] = Job(e)
        elif kind == "change":
            self.jobs[e["job"]].change(e)
        elif kind == "start":
            run = self.runs[e["run"]]
            run.started = min(run.started or e["t"], e["t"])
        elif kind in ("cancel", "replaced"):
            run = self.runs[e["run"]]
            run.cancel_asked = min(run.cancel_asked or e["t"], e["t"])
        elif kind == "jobcancel":
            job = self.jobs[e["job"]]
            job.cancelled = e["t"]
            job.cancelled_unplanned = self.away
        elif kind == "up":
            self.ups.append(e["order"])
        elif kind == "late":
            self.away = self.last_seen if self.away is None else self.away
        elif kind in ("down", "sleep"):
            self.last_seen = e["t"]
        elif kind == "planned":
            self.away = None
        elif kind == "done":
            self.done = e

    def judge(self):
        for run in list(self.runs.values()):
            if run.row is None:
                self.fault("rows", "a claimed run has no row: %s", run.events[:1])
                continue
            job = self.jobs[run.row["job"]]
            job.runs.append(run)
            run.gated = job.gated
        if self.faults:
            return
        self.faults = self.wrong_states
        for job in self.jobs.values():
            job.find_slots()
        self.times = [e["t"] for e in self.events]
        self.pauses = Pauses(self.events)
        self.absences = self.find_absences()
        self.find_missed()
        for job in self.jobs.values():
            self.each_slot_once(job)
            for run in job.runs:
                Replay(self, job, run).check()
            self.check_permits(job)
            job.index()
        for job in self.jobs.values():
            for run in job.runs:
                self.outcome(job, run)
        self.check_chains()
        self.check_results()
        self.limits = Limits(self.jobs, self.runs, self.pauses, self.events, self.fault)
        self.limits.check()
        self.kept_counts()

    # ---- slots ----

    def each_slot_once(self, job):
        known = set(job.slots)
        seen = Counter()
        stop = job.until
        if job.cancelled:
            stop = job.cancelled if job.cancelled_unplanned is None else min(job.cancelled, job.cancelled_unplanned)
        for run in job.runs:
            row = run.row
            if row["state"] not in FINAL:
                self.fault("open", "run %d of job %d is still %s (%s) at the end", row["run"], job.id, row["state"], row["reason"])
            if row["kind"] != "schedule":
                continue
            first, last = bisect.bisect_left(job.slots, row["slot"]), bisect.bisect_right(job.slots, row["last"])
            covered = job.slots[first:last]
            if row["slot"] not in known or row["last"] not in known or len(covered) != row["count"]:
                self.fault("slots", "run %d of job %d is for %d slots from %d to %d, expected %d", row["run"], job.id,
                           row["count"], row["slot"], row["last"], len(covered))
            if row["count"] > 1 and (row["state"], row["reason"]) != ("skipped", "missed"):
                self.fault("slots", "run %d stands for %d slots and is %s", row["run"], row["count"], row["state"])
            seen.update(covered)
            became = "missed" if (row["state"], row["reason"]) == ("skipped", "missed") else "run"
            for slot in covered:
                if became not in self.allowed.get((job.id, slot), ("run",)):
                    self.fault("catch-up", "job %d (%s), slot %d: %s, should %sbe missed", job.id,
                               job.at(NEVER).spec.get("catchup"), slot, (row["state"], row["reason"]),
                               "" if became == "run" else "not ")
        for slot in job.slots:
            if seen[slot] > 1 or (seen[slot] == 0 and slot <= stop):
                self.fault("slots", "slot %d of job %d has %d rows", slot, job.id, seen[slot])
        over = job.cancelled and all(r.row["ended"] <= job.cancelled for r in job.runs) and (
            not job.slots or job.slots[-1] <= job.cancelled)
        want = {"finished", "cancelled"} if over else {"cancelled"} if job.cancelled else {"active"} if job.links else {"finished"}
        if self.states[job.id] not in want:
            self.fault("jobs", "job %d is %s at the end", job.id, self.states[job.id])

    def find_absences(self):
        """The times without a daemon: (from, to), ascending."""
        found, gone = [], None
        for e in self.events:
            if e["e"] in ("down", "sleep") and gone is None:
                gone = e["t"]
            elif e["e"] == "late" and gone is not None:
                found.append((gone, e["t"]))
                gone = None
        return found

    def next_awake(self, t):
        """The first time from t on at which a daemon is running."""
        i = bisect.bisect_right(self.absences, (t, NEVER)) - 1
        while i >= 0 and i < len(self.absences) and self.absences[i][0] <= t <= self.absences[i][1]:
            t, i = self.absences[i][1], i + 1
        return t

    def find_missed(self):
        """Computes for each absence of the daemon which slots are missed, by the catch-up policy."""
        self.allowed = {}         # (job, slot) → the allowed outcomes
        self.caught_up = set()    # (job, slot) in an absence, for jobs with catchup=all
        gone, backs, changed = 0, [], set()
        for e in self.events:
            kind = e["e"]
            if kind in ("down", "sleep") and not backs:
                gone = e["t"]
            elif kind == "late":
                backs.append(e)
            elif kind == "change" and backs:
                changed.add(e["job"])
            elif kind == "planned" and backs:
                for job in self.jobs.values():
                    self.find_missed_of(job, gone, backs, job.id in changed)
                backs, changed = [], set()

    def find_missed_of(self, job, gone, backs, changed):
        """One absence of one job. A daemon that crashes while it plans has planned some jobs and leaves the others."""
        if job.made > gone or (job.cancelled and job.cancelled <= gone):
            return
        slots, since, end = job.slots, min(b["since"] for b in backs), backs[-1]["t"]
        first, last = bisect.bisect_right(slots, gone), bisect.bisect_right(slots, end)
        for slot in slots[bisect.bisect_right(slots, since):first]:
            self.allowed[job.id, slot] = ("run", "missed")  # already due when the daemon was last seen
        for i in range(first, last):
            slot, words = slots[i], set()
            for b in backs:
                if slot <= b["t"]:
                    words |= self.becomes(job.at(b["order"]), slots, i, bisect.bisect_right(slots, b["t"]), b["t"])
            unsure = changed or (job.at(NEVER).jitter or len(job.policies) > 1) and slot <= gone + LOOKAHEAD
            self.allowed[job.id, slot] = ("run", "missed") if unsure else tuple(words)
            if not changed and len(job.policies) == 1 and job.at(NEVER).catchup == "all" and words == {"run"}:
                self.caught_up.add((job.id, slot))

    @staticmethod
    def becomes(policy, slots, i, last, back):
        slot, rank = slots[i], last - 1 - i
        if policy.once:
            return {"run"}
        if policy.catchup == "none":
            runs = back - slot <= GRACE
        elif policy.catchup == "latest":
            runs = rank == 0 and back - slot <= DAY
        else:
            runs = rank < policy.newest
        return {"run"} if runs else {"missed"} if back - slot > GRACE else {"run", "missed"}

    # ---- permits ----

    def check_permits(self, job):
        """Checks the number of concurrent runs. Stores when each run held a permit, for the check of skipped runs."""
        changes = []
        for run in job.runs:
            events = run.events
            if not events or not any(p.permits for p in job.policies):
                continue
            run.hold = (events[0]["t"], run.row["ended"] or NEVER)
            if run.row["forced"]:
                continue
            begin = None
            for e in events:
                if e["e"] == "claim" and begin is None and job.at(e["order"]).permits:
                    begin = e["order"]
                elif e["e"] == "back" and begin is not None and all(x["e"] != "end" or x["order"] > e["order"] for x in events):
                    changes += [(begin, 1), (e["order"], -1)]
                    begin = None
            if begin is not None:
                last = events[-1]
                over = last["order"] if last["e"] == "end" and last["became"] != "queued" else self.order_at(run.row["ended"])
                changes += [(begin, 1), (over, -1)]
        busy = 0
        for order, change in sorted(changes):
            busy += change
            if change > 0 and busy > job.at(order).permits:
                self.fault("permits", "job %d has %d concurrent runs, %d allowed, at line %d", job.id, busy,
                           job.at(order).permits, order)
                break

    def order_at(self, t):
        """The position in the journal before the first event at or after t."""
        at = bisect.bisect_left(self.times, t)
        return self.events[at]["order"] - 0.5 if at < len(self.events) else NEVER

    # ---- chains and results ----

    def check_chains(self):
        """A slot of the parents yields exactly one run of the child when its links hold, and no other slot does."""
        ends = defaultdict(list)  # (job, slot) → the ends of its runs
        for e in self.events:
            if e["e"] == "end" and not e["stale"] and e["became"] in FINAL:
                ends[e["job"], self.runs[e["run"]].row["slot"]].append(e)
        self.chained = 0
        for job in self.jobs.values():
            if not job.links:
                continue
            rows = Counter(r.row["slot"] for r in job.runs if r.row["kind"] == "chain")
            parents = {link.parent for link in job.links}
            slots = {slot for parent, slot in ends if parent in parents} | set(rows)
            for slot in slots:
                times = [min((e["at"] for e in ends[link.parent, slot] if link.holds(e["became"], e["code"])), default=NEVER)
                         for link in job.links]
                fires = max(times) if job.joins else min(times)
                # the child is asked at the end of the attempt, which is recorded when a daemon runs
                unsure = fires > job.until - LOOKAHEAD or (job.cancelled is not None and fires >= job.cancelled - DAY)
                self.chained += rows[slot]
                if rows[slot] != (fires < NEVER) and not (unsure and rows[slot] <= (fires < NEVER)):
                    self.fault("chains", "job %d runs after %s (%s): %d runs for slot %d, expected %d", job.id,
                               [(link.parent, link.when) for link in job.links], "all" if job.joins else "any",
                               rows[slot], slot, fires < NEVER)

    def check_results(self):
        """A run has the results of its last attempt."""
        self.with_results = 0
        for run in self.runs.values():
            ends = [e for e in run.events if e["e"] == "end" and not e["stale"]]
            want = "n=%d" % ends[-1]["result"] if ends and ends[-1]["result"] else ""
            self.with_results += bool(want)
            if run.row["results"] != want:
                self.fault("results", "run %d has the results '%s', expected '%s'", run.row["run"], run.row["results"], want)

    # ---- runs that did not start ----

    def outcome(self, job, run):
        row, t = run.row, run.row["ended"]
        ok = True
        if row["state"] == "skipped" and row["reason"] == "gate":
            pass  # Replay has checked it
        elif row["state"] == "skipped":
            ok = not any(e["e"] == "end" for e in run.events) and self.skip_is_right(job, run, row["reason"], t)
        elif row["state"] == "expired":
            self.expired_in_time(job, run)
            word = row["reason"].split(" ")[0]
            limits = [getattr(p, word, 0) for p in job.around(t)]
            ok = any(n and t > row["slot"] + n - row["reason"].endswith("(gate)") for n in limits) and (
                word == "expires" or row["attempt"] == 0 or row["reason"].endswith("(gate)"))
        elif row["state"] == "cancelled":
            ok = run.cancel_asked is not None or (job.cancelled is not None and job.cancelled <= t) or (
                row["reason"] == "replaced" and any(p.overlap == "replace" for p in job.around(t)) and job.newer_due(run, t))
        if not ok:
            self.fault("outcome", "run %d of job %d (%s): %s (%s) at %d is not allowed", row["run"], job.id,
                       ", ".join(p.overlap for p in job.around(t)), row["state"], row["reason"], t)

    def expired_in_time(self, job, run):
        """A run expires at its limit, or when a daemon is running again."""
        row, policy = run.row, job.policies[0]
        limits = [n for n in (policy.deadline if row["attempt"] == 0 else 0, policy.expires) if n]
        if len(job.policies) > 1 or not limits or row["reason"].endswith("(gate)"):
            return
        since = max(row["made"], *[e["t"] for e in run.events], row["slot"] + min(limits) + 1)
        if row["ended"] > self.next_awake(since) + SLACK:
            self.fault("expiry", "run %d of job %d may not start after %d, and expired at %d", row["run"], job.id,
                       row["slot"] + min(limits), row["ended"])

    def skip_is_right(self, job, run, reason, t):
        row = run.row
        if reason == "missed":
            return not run.claims()
        if reason in ("paused", "frozen"):
            return row["kind"] == "schedule" and self.pauses.stops(job, row["slot"], reason)
        if reason == "overlap" and (job.id, row["slot"]) in self.caught_up and job.at(NEVER).overlap == "skip":
            return False
        for p in job.around(t):
            if reason == "overlap" and p.overlap == "replace" and job.newer_due(run, t):
                return True
            if reason == "overlap" and p.overlap == "skip" and job.holders(t, run) >= p.permits:
                return True
            if reason == "limit" and p.overlap == "queue" and job.holders(t, run) >= 1 and (
                    job.waits.count(t) - any(a <= t <= b for a, b, _ in run.waits()) >= p.waiting):
                return True
        return reason == "condition" and job.when and job.newer_due(run, t)

    # ---- counters of the store ----

    def kept_counts(self):
        found = Counter(r.row["state"] for r in self.runs.values())
        jobs = Counter(self.states.values())
        for (of, state), n in self.counts.items():
            if n != (found if of == "run" else jobs)[state]:
                self.fault("counts", "%s %s: the counter is %d, there are %d", of, state, n, (found if of == "run" else jobs)[state])
        if self.done["spins"] > 10 + self.done["claims"] // 50:
            self.fault("claims", "%d of %d claims had no effect", self.done["spins"], self.done["claims"])


class Replay:
    """Checks the attempts of one run against the retry policy."""

    def __init__(self, judge, job, run):
        self.judge, self.job, self.run = judge, job, run
        self.failures = self.lost = self.ended = 0
        self.looks = 0  # of the gate, that delayed the run
        self.first_start, self.dead = None, False

    def fault(self, text, *what):
        self.judge.fault("retries", "run %d of job %d: " + text, self.run.row["run"], self.job.id, *what)

    def check(self):
        row = self.run.row
        want, due = "claim", None
        for i, e in enumerate(self.run.events):
            if (e["e"] == "claim") != (want == "claim"):
                self.fault("%s at %d, expected %s", e["e"], e["t"], want)
                return
            if e["e"] == "claim":
                self.policy = self.job.at(e["order"])
                self.claimed = e["order"]
                self.claim(e, due, i == 0)
                want = "end"
            elif e["e"] == "back":
                want, due = "claim", None
            else:
                self.policy = self.at_end(e)
                state, due = self.end(e)
                if e["became"] not in state:
                    self.fault("after %s at %d (exit code %d) the run is %s, expected %s", e["outcome"], e["t"], e["code"], e["became"],
                               " or ".join(sorted(state)))
                if e["became"] != "queued" and row["state"] != e["became"]:
                    self.fault("is %s, but ended as %s", row["state"], e["became"])
                want = "claim" if e["became"] == "queued" else "nothing"
        if row["state"] in ("succeeded", "failed", "timed_out", "lost") and want != "nothing":
            self.fault("is %s without an end", row["state"])
        self.totals()

    def at_end(self, e):
        """The definition that the daemon used: that of the claim, or that of the last start of a daemon."""
        ups = self.judge.ups
        last = bisect.bisect_left(ups, e["order"]) - 1
        return self.job.at(max(self.claimed, ups[last] if last >= 0 else 0))

    def totals(self):
        row = self.run.row
        for name, n in (("failures", self.failures), ("lost", self.lost), ("attempt", self.ended)):
            if row[name] != n:
                self.fault("%s is %d, expected %d", name, row[name], n)
        if bool(row["dead"]) != self.dead:
            self.fault("%s a dead letter (%s)", "is" if row["dead"] else "is not", row["reason"])
        if self.run.attempts != self.ended:
            self.fault("has %d attempt rows, expected %d", self.run.attempts, self.ended)

    def claim(self, e, due, first):
        job, policy = self.job, self.policy
        if e["t"] < e["due"]:
            self.fault("claimed at %d, before it was due at %d", e["t"], e["due"])
        if first and e["kind"] == "schedule" and not job.gated:
            jitter = max(p.jitter for p in job.policies)
            if not e["slot"] <= e["due"] <= e["slot"] + jitter:
                self.fault("due %d after its slot, with a jitter of %d", e["due"] - e["slot"], jitter)
        if due and not due[0] <= e["due"] <= max(due[1], e["due"] if job.gated else 0):
            self.fault("retried at %d, expected between %d and %d", e["due"], *due)
        if e["attempt"] == 0 and policy.deadline and e["t"] > e["slot"] + policy.deadline:
            self.fault("started %d after its deadline", e["t"] - e["slot"] - policy.deadline)
        if policy.expires and e["t"] > e["slot"] + policy.expires:
            self.fault("started %d after it had expired", e["t"] - e["slot"] - policy.expires)
        pauses = self.judge.pauses
        if first and e["kind"] == "schedule" and len(job.policies) == 1 and pauses.surely(job, e["slot"]) and (
                job.slots[-1] > e["t"] + LOOKAHEAD and not job.cancelled):
            self.fault("claimed at %d, its slot %d is inside a pause", e["t"], e["slot"])
        if pauses.surely(job, e["t"]) and (not e["forced"] or pauses.frozen(job, e["t"])):
            self.fault("claimed at %d while the job was paused", e["t"])

    def again(self, e, low, high):
        """The run is queued again, unless it was cancelled or the retry would exceed the run timeout."""
        job, run, policy = self.job, self.run, self.policy
        states = {"queued"}
        if (run.cancel_asked is not None and run.cancel_asked <= e["t"]) or (job.cancelled and job.cancelled <= e["t"]):
            return {"cancelled"}, None
        if policy.run_timeout:
            over = (self.first_start or e["t"]) + policy.run_timeout
            self.dead = policy.retries > 0 and e["became"] == "timed_out"
            if e["t"] + low >= over and self.first_start is not None:
                return {"timed_out"}, None
            if e["t"] + high >= over:
                states = {"queued", "timed_out"}
        return states, (e["t"] + low, e["t"] + high)

    def failure(self, e, state, stalled=False):
        policy = self.policy
        self.failures += 1
        if state == "timed_out" and not stalled and policy.run_timeout and e["t"] >= (self.first_start or e["t"]) + policy.run_timeout:
            self.dead = policy.retries > 0
            return {"timed_out"}, None
        if self.failures <= policy.retries:
            return self.again(e, *policy.delay(self.failures))
        self.dead = policy.retries > 0
        return {state}, None

    def gate(self, e):
        """Exit code 75 asks again later, 77 skips the run, others are failures."""
        asked = self.run.cancel_asked is not None and self.run.cancel_asked <= e["t"]
        if e["code"] == 77:
            return {"skipped", "cancelled"} if asked or self.job.cancelled else {"skipped"}, None
        if e["code"] != 75:
            return self.failure(e, "failed")
        delay = min(5 * SEC << self.looks, 600 * SEC)
        self.looks += 1
        last = min([self.run.row["slot"] + n for n in (
            self.policy.expires, self.policy.deadline if self.failures + self.lost == 0 else 0) if n], default=NEVER)
        if e["t"] >= last:
            return {"expired", "cancelled"} if asked or self.job.cancelled else {"expired"}, None
        at = min(delay, last - e["t"])
        return self.again(e, at, at)

    def end(self, e):
        """The allowed states after the end of an attempt, and the range of the retry time."""
        policy, outcome = self.policy, e["outcome"]
        self.ended += 1
        if self.first_start is None and outcome not in ("not_started", "gated") and (e["began"] or self.run.started):
            self.first_start = min(e["began"] or NEVER, self.run.started or NEVER)
        if outcome == "cancelled":
            return {"cancelled"}, None
        if outcome == "gated":
            return self.gate(e)
        if outcome == "timed_out":
            return self.failure(e, "timed_out")
        if outcome == "stalled":
            return self.failure(e, "timed_out", stalled=True)
        if outcome == "not_started":
            return self.failure(e, "failed")
        if outcome == "lost":
            self.lost += 1
            asked = self.run.cancel_asked is not None and self.run.cancel_asked <= e["t"]
            if asked or (policy.rerun and self.lost <= LOST_MAX):
                return self.again(e, 0, 0)
            self.dead = policy.retries > 0
            return {"lost"}, None
        action = policy.action(e["code"])
        if action == "ok":
            return {"succeeded"}, None
        if action == "retry":
            return self.failure(e, "failed")
        self.failures += 1
        self.dead = action == "dead"
        return {"failed"}, None


def main():
    judge = Judge(sys.argv[1])
    judge.judge()
    states = Counter((r.row["state"], re.sub(r"[ \d].*", "", r.row["reason"])) for r in judge.runs.values() if r.row)
    slots = sum(len(j.slots) for j in judge.jobs.values())
    kinds = Counter(e["how"] if e["e"] == "down" else e["e"] for e in judge.events)
    print("# %d jobs, %d slots, %d runs, %d attempts, %d batches; %s" % (
        len(judge.jobs), slots, len(judge.runs), sum(r.attempts for r in judge.runs.values()), judge.done["batches"],
        ", ".join("%d %s" % (kinds[how], how) for how in ("crash", "reboot", "stop", "sleep", "pause", "limit", "change",
                                                          "trigger", "jobcancel"))))
    print("# " + ", ".join("%s%s %d" % (s, " (%s)" % r if r else "", n) for (s, r), n in sorted(states.items())))
    if hasattr(judge, "chained"):
        print("# %d runs after other jobs, %d runs with results, %d stalled and %d gated attempts, %d with a stored state" % (
            judge.chained, judge.with_results, *(sum(e["e"] == "end" and e["outcome"] == o for e in judge.events) for o in ("stalled", "gated")),
            judge.filled))
    if hasattr(judge, "limits"):
        print("# checked " + ", ".join("%s %d times" % check for check in judge.limits.checks.items()))
    for rule, n in sorted(Counter(rule for rule, _ in judge.faults).items()):
        print("# %d violations of rule '%s':" % (n, rule))
        for _, text in [f for f in judge.faults if f[0] == rule][:5]:
            print("#   " + text)
    sys.exit(3 if judge.faults else 0)  # a judge that ends early exits with another status


main()
