# SPDX-License-Identifier: Apache-2.0
# Catch-up of slots that were missed while no daemon was running, and how long it takes.
import os
import signal
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import FINAL, Daemon, case, instant, main, sanitized, wait_until

SECOND = 1000000
MISSED = 1000


def while_down(d, seconds):
    """Simulates this much time without a daemon: makes every slot and every row older."""
    db = sqlite3.connect(d.db_path)
    for table, columns in (("due", ("slot",)), ("runs", ("slot", "slot_last", "due_at", "created_at")),
                           ("nodes", ("opened_at", "closed_at")), ("jobs", ("created_at",))):
        for column in columns:
            db.execute("UPDATE %s SET %s = %s - ? WHERE %s BETWEEN 1 AND 9000000000000000" % (table, column, column, column),
                       (seconds * SECOND,))
    db.commit()
    db.close()


def rows_of(d, job):
    """(first slot, last slot, count, state) in the order of slots."""
    return sorted((instant(r["slot"]), instant(r["slot_last"]), r["slot_count"], r["state"], r) for r in d.runs(job)
                  if r["kind"] == "schedule")


def assert_whole(rows, period):
    """Each slot is in exactly one row."""
    for a, b in zip(rows, rows[1:]):
        assert round(a[0] + a[2] * period) == round(b[0]) and round(a[1] + period) == round(b[0]), (a, b)


def runs_once_more(d, job, since):
    """Waits for a run of a current slot."""
    return wait_until("a current slot has run", 60, lambda: [
        r for r in rows_of(d, job) if r[0] >= since and r[3] == "succeeded"])


@case
def a_thousand_missed_slots_with_each_value_of_catchup():
    words = {"none": 0, "latest": 1, "all:7": 7, "all": MISSED, "all:1000": MISSED}
    with Daemon() as d:
        d.start()
        # overlap is allowed, because this test is about catch-up only
        jobs = {w: d.add(command=["true"], schedule=["*/2 * * * * *"], catchup=w, overlap="allow")["id"] for w in words}
        time.sleep(1)
        d.stop()
        # runs that were due before the stop run late, with any value
        stopped = time.time() - (2 * MISSED + 10)
        while_down(d, 2 * MISSED + 10)
        started = time.time()
        d.start()
        for word, job in jobs.items():
            wait_until("the slots of %s are planned" % word, 60, lambda: [
                r for r in rows_of(d, job) if r[1] >= started - 3])
        planned = time.time() - started
        for job in jobs.values():
            runs_once_more(d, job, started)
            d.api().post("/v1/jobs/%d/cancel" % job)
        wait_until("all runs have ended", 120, lambda: all(r["state"] in FINAL for r in d.runs()), 0.2)
        notes = ["planned within %.0f ms of the start" % (planned * 1000)]
        for word, job in jobs.items():
            rows = rows_of(d, job)
            assert_whole(rows, 2)
            old = [r for r in rows if stopped < r[0] < started - 2.5]
            missed = [r for r in old if r[3] == "skipped"]
            ran = [r for r in old if r[3] == "succeeded" and instant(r[4]["started_at"]) > started]
            assert all(r[4]["reason"] == "missed" for r in missed), missed
            # one row for all missed slots; slots planned before the stop have one row each
            assert len(missed) <= 1 + 4 and sum(r[2] > 1 for r in missed) <= 1, missed
            # The newest slots are counted when they are planned, so some of them may be later than the start.
            later = 0 if words[word] == MISSED else int(planned / 2)
            assert words[word] - 2 - later <= len(ran) <= words[word], (word, len(ran))
            assert not missed or not ran or missed[-1][1] < ran[0][0], (missed, ran[:1])
            late = [r for r in rows if started + 1 < r[0] and r[3] == "succeeded"]
            late = sorted(instant(r[4]["started_at"]) - r[0] for r in late)
            assert not late or sanitized() or late[0] < 5, late
            assert sum(r[2] for r in rows) >= MISSED, rows
            started_at = [instant(r[4]["started_at"]) for r in ran]
            assert started_at == sorted(started_at), "out of order"
        assert planned < 10, planned
        return "; ".join(notes)


@case
def a_month_of_missed_seconds_is_one_row_and_delays_no_other_job():
    with Daemon() as d:
        d.start()
        heavy = [d.add(command=["true"], schedule=["* * * * * *"], tz=z)["id"] for z in ("UTC", "Asia/Kathmandu")]
        time.sleep(0.5)
        d.stop()
        while_down(d, 30 * 86400)
        started = time.time()
        d.start()
        other = d.add(command=["true"], schedule=["* * * * * *"])["id"]
        first = runs_once_more(d, other, started)[0]
        late = instant(first[4]["started_at"]) - first[0]
        for job in heavy:
            wait_until("the month is recorded", 120, lambda: [r for r in rows_of(d, job) if r[2] > 86400])
        took = time.time() - started
        for job in heavy:
            runs_once_more(d, job, started + took)
            rows = rows_of(d, job)
            assert_whole(rows, 1)
            long = [r for r in rows if r[2] > 100]
            assert len(long) == 1 and abs(long[0][2] - 30 * 86400) < 120, long
        assert sanitized() or late < max(3, took / 2), (late, took)
        return "2 x 2.6 million slots in %.1f s; meanwhile another job was %.0f ms late" % (took, late * 1000)


@case
def catchup_applies_to_planned_slots_when_the_daemon_died_before_they_were_due():
    """The daemon is killed with slots planned ahead and restarted some seconds after the last of them."""
    words = ("none", "latest", "all")
    with Daemon() as d:
        d.start()
        at = int(time.time()) + 4
        jobs = {w: d.add(command=["true"], schedule=["@%d" % at, "@%d" % (at + 1), "@%d" % (at + 3600)], catchup=w,
                         overlap="allow")["id"] for w in words}
        jobs["in turn"] = d.add(command=["sleep", "1"], schedule=["@%d" % at, "@%d" % (at + 1), "@%d" % (at + 3600)],
                                catchup="all")["id"]
        once = d.add(command=["true"], schedule=["@%d" % at], catchup="none")["id"]
        wait_until("they are planned", 30, lambda: all(len(d.runs(j)) == 2 for j in jobs.values()))
        assert all(r["state"] == "queued" for r in d.runs())
        d.kill()
        time.sleep(max(0, at + 5 - time.time()))
        d.start()
        wait_until("all runs have ended", 30, lambda: all(r["state"] in FINAL for r in d.runs()))
        states = {w: [r[3] for r in rows_of(d, jobs[w])] for w in words}
        turns = sorted((instant(r["started_at"]), instant(r["ended_at"])) for r in d.runs(jobs["in turn"]) if r["started_at"])
        assert len(turns) == 2 and turns[0][1] <= turns[1][0], d.runs(jobs["in turn"])  # the default overlap
        assert states == {"none": ["skipped"] * 2, "latest": ["skipped", "succeeded"], "all": ["succeeded"] * 2}, states
        assert all(r["reason"] == "missed" for r in d.runs() if r["state"] == "skipped")
        assert d.runs(once)[0]["state"] == "succeeded"  # its only slot


@case
def a_daemon_that_was_stopped_for_a_while_catches_up_without_a_burst():
    """The same as after a suspend: one wake-up, then the policy applies."""
    with Daemon() as d:
        d.start()
        job = d.add(command=["true"], schedule=["* * * * * *"], overlap="allow")["id"]
        wait_until("it runs", 30, lambda: [r for r in rows_of(d, job) if r[3] == "succeeded"])
        d.process.send_signal(signal.SIGSTOP)
        asleep = time.time()
        time.sleep(14)
        awake = time.time()
        d.process.send_signal(signal.SIGCONT)
        runs_once_more(d, job, awake + 1)
        d.api().post("/v1/jobs/%d/cancel" % job)
        wait_until("all runs have ended", 30, lambda: all(r["state"] in FINAL for r in d.runs(job)))
        rows = rows_of(d, job)
        assert_whole(rows, 1)
        meanwhile = [r for r in rows if asleep < r[0] < awake - 2.5]
        ran = [r for r in meanwhile if r[3] == "succeeded"]
        assert len(ran) <= 1, ran
        assert sum(r[2] for r in meanwhile) >= 8, meanwhile
        assert "catching up" in d.said(), d.said()


@case
def a_job_without_a_schedule_waits_for_a_trigger():
    with Daemon() as d:
        d.start()
        d.jobctl("add", "-n", "by-hand", "--manual", "--", "true")
        d.stop()
        d.start()
        job = d.api().get("/v1/jobs/by-hand")
        assert job["state"] == "active" and job["next_at"] is None and job["schedule"] == ["manual"], job
        assert d.runs(job["id"]) == []
        assert "--manual" in d.jobctl("show", "by-hand", "--as-command").stdout


main()
