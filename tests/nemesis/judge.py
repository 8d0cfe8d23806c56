# SPDX-License-Identifier: Apache-2.0
# Tests the judge of the nemesis with evidence made by hand: a worker frozen before its first line, and real duplicates.
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nemesis

SLOT = 1000.0
CASES = []


def case(function):
    CASES.append(function)
    return function


def body(attempt, began, ended, rc=0):
    return dict(job="j", slot=int(SLOT * 1000), run="1", att=attempt, fence=attempt, id="1/%d" % attempt, s=began, su=began,
                e=ended, eu=ended, rc=rc, clash=False)


def row(attempt, state, started):
    return dict(job="j", slot=int(SLOT * 1000), run="1", attempt=attempt, fence=attempt, state=state, started=started)


def duplicates(bodies, started, faults):
    """The number of violations that the judge finds. The fault hit attempt 1; attempt 2 counts."""
    job = dict(name="j", key="k", start_ms=int(SLOT * 1000), period_ms=1000, count=1, dur=1, fails=0, max_attempts=8,
               overlap="allow", may_skip=False, ack="ok", ack_t=0)
    history = [row(1, "stale", started[0]), row(2, "success", started[1]), dict(row(0, "success", 0), fence=0)]
    report = nemesis.check([job], sorted(bodies, key=lambda b: b["s"]), history, faults, dict(min_slots=1))
    return report["rules"].get("duplicate", 0)


def freeze(begin, end):
    return [dict(kind="pause-node-past", node="n0", t=begin, end=end, outage=False, victims=["1/1"])]


@case
def a_worker_that_was_frozen_before_its_first_line_is_no_duplicate():
    late = [body(2, SLOT + 5, SLOT + 6), body(1, SLOT + 9, SLOT + 10)]
    assert duplicates(late, (SLOT + 0.1, SLOT + 5), freeze(SLOT + 0.2, SLOT + 8.9)) == 0


@case
def a_worker_that_was_started_after_its_successor_is_a_duplicate():
    late = [body(2, SLOT + 5, SLOT + 6), body(1, SLOT + 9, SLOT + 10)]
    assert duplicates(late, (SLOT + 8.95, SLOT + 5), freeze(SLOT + 0.2, SLOT + 8.9)) == 1


@case
def a_recorded_start_without_a_fault_before_the_first_line_is_not_believed():
    late = [body(2, SLOT + 5, SLOT + 6), body(1, SLOT + 9, SLOT + 10)]
    assert duplicates(late, (SLOT + 7, SLOT + 5), freeze(SLOT + 0.2, SLOT + 4)) == 1
    assert duplicates(late, (SLOT + 0.1, SLOT + 5), []) == 1


@case
def a_second_body_after_a_success_is_a_duplicate():
    both = [body(1, SLOT + 0.1, SLOT + 1), body(2, SLOT + 5, SLOT + 6)]
    assert duplicates(both, (SLOT + 0.1, SLOT + 5), [dict(f, victims=[]) for f in freeze(SLOT + 2, SLOT + 3)]) == 1


def main():
    print("1..%d" % len(CASES))
    failed = False
    for i, function in enumerate(CASES):
        try:
            function()
            print("ok %d - %s" % (i + 1, function.__name__))
        except AssertionError as e:
            failed = True
            print("not ok %d - %s\n# %s" % (i + 1, function.__name__, e))
    sys.exit(failed)


main()
