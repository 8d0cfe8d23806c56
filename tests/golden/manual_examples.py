# SPDX-License-Identifier: Apache-2.0
# Runs the examples of jobsched-time(7) and compares what they print with what the page says they print.
import os
import pathlib
import shlex
import subprocess

BUILD = os.environ.get("top_builddir", "build")
PAGE = pathlib.Path(os.environ.get("top_srcdir", ".")) / "man" / "jobsched-time.7"


def examples(text):
    """(command, expected output) of every '$ command' in a literal block."""
    literal, command, lines = False, None, []
    for line in text.splitlines():
        if line.startswith(".Bd -literal"):
            literal = True
        elif line.startswith(".Ed"):
            if command:
                yield command, lines
            literal, command = False, None
        elif literal:
            line = line.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
            if line.startswith("$ "):
                if command:
                    yield command, lines
                command, lines = line[2:], []
            else:
                lines.append(line)


def main():
    found = list(examples(PAGE.read_text(encoding="utf-8")))
    print(f"1..{len(found) + 1}")
    print(f"{'ok' if len(found) >= 15 else 'not ok'} 1 - the page has examples")
    for number, (command, want) in enumerate(found, 2):
        words = shlex.split(command)
        words[0] = os.path.join(BUILD, words[0])
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=dict(os.environ, TZ="UTC"))
        # findings and refusals come on standard error; the page shows refusals only
        got = (done.stdout if done.returncode == 0 else done.stderr).splitlines()
        ok = got == want and (done.returncode == 0) == (not want[0].startswith("jobctl: "))
        print(f"{'ok' if ok else 'not ok'} {number} - {command}")
        if not ok:
            print("# wanted: " + " | ".join(want) + "\n# got:    " + " | ".join(got))


main()
