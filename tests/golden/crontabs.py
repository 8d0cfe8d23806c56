# SPDX-License-Identifier: Apache-2.0
# Compares 'jobctl import crontab' with what Debian's cron 3.0pl1-162 reads from odd tables (odd-crontabs.json), and with the
# recordings of many real tables, if they are beside the source tree.
#
# odd-crontabs.json: 'data' is the table, a character for each byte; {x*998} stands for a repetition. 'refused' is the line of
# the error, or true for a missing newline. 'time' has the values of the five fields, and 'dom' or 'dow' if that field begins
# with '*'.
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

JOBCTL = os.path.abspath(os.path.join(os.environ.get("top_builddir", "build"), "jobctl"))
SOURCE = pathlib.Path(os.environ.get("top_srcdir", ".")).resolve()
SETS = ("public", "tricky")


def find_recordings():
    """$CRON_RECORDINGS, or the directory 'shared/cron' beside one of the directories above the source tree."""
    given = os.environ.get("CRON_RECORDINGS")
    for found in [pathlib.Path(given)] if given else [p / "shared" / "cron" for p in SOURCE.parents]:
        if (found / "compare.py").is_file():
            return found
    return None


def compare(recordings, name):
    command = f"{JOBCTL} import crontab --format json --table {{table}} --users {{users}} {{file}}"
    done = subprocess.run([sys.executable, str(recordings / "compare.py"), "--set", str(recordings / name), "--cmd", command,
                           "--min", "100"], capture_output=True, text=True, timeout=600)
    full = re.search(r"tables in full agreement ([0-9.]+)% exact", done.stdout)
    return done, done.returncode == 0 and full and full.group(1) == "100.00"


def repeated(text):
    return re.sub(r"\{(.)\*(\d+)\}", lambda m: m.group(1) * int(m.group(2)), text)


def ranges(values):
    """[1, 2, 3, 7] is 1-3,7."""
    parts = []
    for v in values:
        if parts and parts[-1][1] == v - 1:
            parts[-1][1] = v
        else:
            parts.append([v, v])
    return ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in parts) or "none"


def entry_of(row):
    """An entry that jobctl prints, in the form of odd-crontabs.json."""
    entry = {"line": row["line"], "command": row["command"]}
    if row.get("command_b64"):
        entry["command"] = "\ufffd"  # not UTF-8
    entry.update({k: row[k] for k in ("user", "stdin", "env") if row.get(k)})
    entry["time"] = "@reboot" if row.get("reboot") else " ".join(
        [ranges(row[k]) for k in ("minute", "hour", "dom", "month", "dow")] + [k for k in ("dom", "dow") if row[k + "_star"]])
    return entry


def read_table(directory, row):
    """What jobctl reads from a table: the entries, or the line of the first error."""
    table, users = os.path.join(directory, "table"), os.path.join(directory, "users")
    with open(table, "wb") as f:
        f.write(repeated(row["data"]).encode("latin-1"))
    with open(users, "w") as f:
        f.write("root\n")
    out = subprocess.run([JOBCTL, "import", "crontab", "--format", "json", "--table", row["table"], "--users", users, table],
                         capture_output=True, timeout=120).stdout
    rows = [json.loads(line.decode("utf-8", "replace")) for line in out.splitlines()]
    errors = [r for r in rows if r.get("error") is not None or "file_error" in r]
    if errors:
        return {"refused": True if "file_error" in errors[0] else errors[0]["line"]}
    return {"entries": [entry_of(r) for r in rows if "command" in r]}


def odd_tables():
    """The differences, as texts."""
    with open(SOURCE / "tests" / "golden" / "odd-crontabs.json", encoding="utf-8") as f:
        tables = json.load(f)
    with tempfile.TemporaryDirectory() as directory:
        for row in tables:
            want = {k: row[k] for k in ("refused", "entries") if k in row}
            want = json.loads(repeated(json.dumps(want)))
            got = read_table(directory, row)
            if want != got:
                yield "%s: %r\n  cron: %s\n  ours: %s" % (row["name"], row["data"], want, got)


def main():
    wrong = list(odd_tables())
    print(f"{'not ok' if wrong else 'ok'} 1 - odd tables mean the same as for Debian's cron")
    for line in "\n".join(wrong).splitlines()[:60]:
        print("# " + line)
    recordings = find_recordings()
    if not recordings:
        print("ok 2 - all recorded tables mean the same as for Debian's cron # SKIP no recordings beside the source tree\n1..2")
        return bool(wrong)
    failed = int(bool(wrong))
    for number, name in enumerate(SETS, 2):
        done, good = compare(recordings, name)
        print(f"{'ok' if good else 'not ok'} {number} - all tables of '{name}' mean the same as for Debian's cron")
        if not good:
            failed = 1
            for line in (done.stdout + done.stderr).splitlines()[:60]:
                print("# " + line)
    print(f"1..{len(SETS) + 1}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
