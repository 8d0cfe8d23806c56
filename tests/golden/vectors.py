# SPDX-License-Identifier: Apache-2.0
# Tests 'jobctl next' with the schedule vectors of tests/golden/time: all as a batch, some in separate processes.
import collections
import os
import pathlib
import subprocess
import sys

JOBCTL = os.path.join(os.environ.get("top_builddir", "build"), "jobctl")
VECTORS = pathlib.Path(os.environ.get("top_srcdir", ".")) / "tests" / "golden" / "time"
COUNT = "5"
ALONE_EVERY = 40  # every 40th row is also tested in its own process

Row = collections.namedtuple("Row", "line schedule zone start want id")


def rows_of(path):
    """Rows are schedule, zone, from, instants, source[, id]; files of refusals are schedule, reason."""
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cols = text.split("\t")
        if path.stem.startswith("invalid"):
            yield Row(number, cols[0], "UTC", "2024-01-01T00:00:00Z", None, "")
        else:
            yield Row(number, cols[0], cols[1], cols[2], cols[3], cols[5] if len(cols) > 5 else "")


def ask_batch(rows):
    text = "".join("\t".join((r.schedule, r.zone, r.start, COUNT, r.id)) + "\n" for r in rows)
    done = subprocess.run([JOBCTL, "next", "--batch"], input=text, capture_output=True, text=True, check=True)
    answers = done.stdout.split("\n")[:-1]
    return [None if a.startswith("ERROR ") else a for a in answers]


def ask_alone(row):
    done = subprocess.run(
        [JOBCTL, "next", "--tz", row.zone, "--from", row.start, "--count", COUNT, "--id", row.id, "--", row.schedule],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return ",".join(done.stdout.split())
    # a refusal has a message on standard error only, and the exit code for invalid values
    return None if done.returncode == 2 and not done.stdout and done.stderr else f"exit {done.returncode}"


def compare(path, rows, answers):
    bad = [f"{path.name}:{r.line} '{r.schedule}' {r.zone} {r.start}: wanted {r.want or 'a refusal'}, got {a or 'a refusal'}"
           for r, a in zip(rows, answers) if a != r.want]
    if len(answers) != len(rows):
        bad.append(f"{len(rows)} rows, {len(answers)} answers")
    return bad


def main():
    number = 0

    def report(name, bad):
        nonlocal number
        number += 1
        print(f"{'not ok' if bad else 'ok'} {number} - {name}")
        for line in bad[:20]:
            print("# " + line)
        sys.stdout.flush()

    for path in sorted(VECTORS.glob("*.tsv")):
        rows = list(rows_of(path))
        report(f"{len(rows)} vectors of {path.stem}", compare(path, rows, ask_batch(rows)))
        some = rows[::ALONE_EVERY]
        report(f"{len(some)} vectors of {path.stem} in separate processes", compare(path, some, [ask_alone(r) for r in some]))
    if not number:
        report("there are vectors", ["none in " + str(VECTORS)])
    print(f"1..{number}")


main()
