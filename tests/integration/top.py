# SPDX-License-Identifier: Apache-2.0
# Tests 'jobctl top' on a real terminal (tmux): views, keys, sizes, live output, restarts of the daemon, and the terminal afterwards.
import contextlib
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, JOBCTL, Daemon, case, main, need_program, wait_until

WAIT = int(os.environ.get("TOP_WAIT", "30"))


class Terminal:
    """A tmux server with one window, which runs a shell."""

    def __init__(self, d, columns=80, lines=24, term="tmux-256color"):
        need_program("tmux")
        self.d = d
        self.socket = os.path.join(d.dir, "tmux")
        env = dict(d.env, PATH=os.path.abspath(BUILD) + ":" + d.env["PATH"], TERM="xterm", HOME=d.dir,
                   ASAN_OPTIONS=d.env.get("ASAN_OPTIONS", "") + ":handle_segv=0")  # the signal ends the process
        env.pop("TMUX", None)
        with open(os.path.join(d.dir, "rc"), "w") as f:
            f.write("PS1='ready>'\nTERM=%s\n" % term)
        self.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  "exec bash --rcfile '%s/rc'" % d.dir, env=env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")

    def tmux(self, *words, env=None):
        return subprocess.run(["tmux", "-S", self.socket, *words], env=env, check=True, capture_output=True, text=True,
                              timeout=60).stdout

    def send(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def value(self, name):
        return self.tmux("display-message", "-p", "#{%s}" % name).strip()

    def wait(self, *texts, absent=()):
        """Waits until the screen contains all texts, and returns it."""
        last = [""]

        def found():
            last[0] = self.screen()
            return all(t in last[0] for t in texts) and not any(t in last[0] for t in absent)
        try:
            wait_until("the screen", WAIT, found, 0.05)
        except AssertionError:
            raise AssertionError("not on the screen: %r, absent %r\n%s" % (texts, absent, last[0])) from None
        return last[0]

    def settings(self):
        return subprocess.run(["stty", "-g", "-F", self.value("pane_tty")], check=True, capture_output=True, text=True).stdout

    def start(self, *options):
        """Starts top and returns the settings of the terminal before."""
        self.wait("ready>")
        before = self.settings()
        self.type(" ".join(["jobctl", "top", *options, "; echo code $?"]))
        self.send("Enter")
        wait_until("top uses the other screen", WAIT, lambda: self.value("alternate_on") == "1", 0.05)
        return before

    def assert_restored(self, before):
        wait_until("top left the other screen", WAIT, lambda: self.value("alternate_on") == "0", 0.05)
        wait_until("the settings are restored", WAIT, lambda: self.settings() == before, 0.05)
        assert self.value("cursor_flag") == "1"

    def pids(self):
        """The pids of top: the guard and the process of the screen."""
        text = subprocess.run(["pgrep", "-f", "--", "^jobctl top"], capture_output=True, text=True).stdout
        found = [int(p) for p in text.split()]
        mine = [p for p in found if self.d.dir.encode() in open("/proc/%d/environ" % p, "rb").read()]
        return sorted(mine)


def jobs(d):
    d.add(name="nightly", command=["true"], schedule=["0 3 * * *"])
    d.add(name="talks", schedule=["manual"],
          script="printf 'a\\033[31mred\\007\\n'; i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo \"line $i 日本\"; sleep 0.2; done")
    d.add(name="hand", command=["true"], schedule=["manual"])


@case
def a_freeze_is_shown_first_and_counts_that_do_not_fit_are_left_out():
    with Daemon() as d, Terminal(d.start()) as t:
        jobs(d)
        t.start()
        t.wait("[1 jobs]", "4 nodes  3 active, 0 running, 0 queued ")
        d.jobctl("freeze", "--reason", "test")
        t.wait("4 nodes  FROZEN 3 active, 0 running ")
        t.send("/")
        t.send("nightly-n", "Enter")
        title = t.wait("/nightly-n FROZEN 3 active ").splitlines()[0]
        assert re.fullmatch(r".* 3 active +\d\d:\d\d:\d\d", title), title


@case
def the_four_views_show_jobs_runs_queues_and_nodes():
    with Daemon() as d, Terminal(d.start()) as t:
        jobs(d)
        before = t.start()
        screen = t.wait("[1 jobs]", "nightly", "talks", "3 active, 0 running")
        assert screen.splitlines()[1].split()[:3] == ["ID", "NAME", "STATE"], screen
        d.api().post("/v1/jobs/hand/run")
        t.send("2")
        t.wait("[2 runs]", "hand#", "succeeded")  # an event updates it
        t.send("Tab")
        t.wait("[3 queues]", "default")
        t.send("Tab")
        t.wait("[4 nodes]", "leader")
        t.send("1")
        t.wait("[1 jobs]", "nightly")
        t.send("Enter")
        t.wait("[job]", "command       true", "0 3 * * *")
        t.send("q")
        t.send("w")
        t.wait("[why]", "nothing is due")
        t.send("q")
        t.send("?")
        t.wait("[keys]", "explain why a job or run waits")
        t.send("q")
        t.wait("[1 jobs]")
        t.send("q")
        t.wait("code 0")
        t.assert_restored(before)


@case
def it_fits_large_and_tiny_terminals():
    with Daemon() as d, Terminal(d.start(), 200, 50) as t:
        jobs(d)
        t.start()
        screen = t.wait("nightly", "? help")
        assert len(screen.splitlines()[0]) > 150, screen  # the clock is at the right edge
        assert "Space mark" in screen.splitlines()[-1], screen
        t.tmux("resize-window", "-x", "20", "-y", "5")
        t.wait("[jobs]", "night", "? help")
        wait_until("the lines fit", WAIT, lambda: all(len(line) <= 20 for line in t.screen().splitlines()), 0.05)
        assert len(t.screen().splitlines()) == 5, t.screen()
        t.send("Enter")
        t.wait("[job] line 1 of")
        t.send("q")
        t.tmux("resize-window", "-x", "10", "-y", "2")
        t.wait("[jobs]")
        t.tmux("resize-window", "-x", "80", "-y", "24")
        t.wait("[1 jobs]", "talks")
        t.send("q")
        t.wait("code 0")


@case
def output_is_followed_and_control_characters_are_escaped():
    with Daemon() as d, Terminal(d.start()) as t:
        jobs(d)
        t.start()
        t.wait("talks")
        t.send("j")
        t.send("r")
        t.wait("queued a run of job 2 'talks'", "running ")  # in the column LAST
        t.send("l")
        t.wait("[output]", "a\\x1b[31mred\\x07", "line 1 日本", "line 9 日本")
        t.wait("line 40 日本", absent=["line 1 日本"])  # it scrolls
        t.send("q")
        t.send("2")
        t.wait("[2 runs]", "talks#")
        t.send("x")
        t.wait("[y/N] cancel run talks#")
        t.send("n")
        t.wait("nothing was done")
        t.send("x")
        t.send("y")
        t.wait("cancelled", absent=["running 1"])
        d.wait_final("talks")
        assert d.runs("talks")[0]["state"] == "cancelled"
        t.send("q")


@case
def marked_jobs_are_paused_and_searches_narrow_the_list():
    with Daemon() as d, Terminal(d.start()) as t:
        jobs(d)
        t.start()
        t.wait("nightly")
        t.send("Space", "Space")
        t.wait("2 marked")
        t.send("p")
        wait_until("both jobs are paused", WAIT,
                   lambda: [j["state"] for j in d.api().get("/v1/jobs")["jobs"]] == ["paused", "paused", "active"])
        t.wait("paused")
        t.send("Escape")
        t.wait("[1 jobs]", absent=["marked"])
        t.send("/")
        t.type("han")
        t.wait("search: han_")
        t.send("Enter")
        t.wait("/han", "hand", absent=["nightly"])
        t.send("Escape")
        t.wait("nightly")
        t.send("s")
        t.wait("sorted by name")
        names = [line.split()[1] for line in t.wait("by name", "nightly").splitlines()[2:5]]
        assert names == ["hand", "nightly", "talks"], names
        t.send("q")


@case
def a_restart_of_the_daemon_is_shown_and_survived():
    with Daemon() as d, Terminal(d.start()) as t:
        jobs(d)
        t.start()
        t.wait("nightly")
        d.stop()
        t.wait("NO CONNECTION for", "nightly")  # the last rows stay
        t.send("j")  # keys still work
        d.start()
        t.wait("connected to the daemon again", "[1 jobs]")
        d.add(name="later", command=["true"], schedule=["manual"])
        t.wait("later")
        t.send("q")
        t.wait("code 0")


@case
def the_terminal_is_restored_after_every_end():
    with Daemon() as d, Terminal(d.start()) as t:
        jobs(d)
        for number, pick in ((signal.SIGTERM, 0), (signal.SIGINT, 1), (signal.SIGHUP, 1), (signal.SIGKILL, 1),
                             (signal.SIGSEGV, 1), (signal.SIGKILL, 0)):
            t.send("C-l")
            before = t.start()
            t.wait("nightly")
            pids = wait_until("two processes", WAIT, lambda: t.pids() if len(t.pids()) == 2 else None)
            os.kill(pids[pick], number)
            if (number, pick) != (signal.SIGKILL, 0):  # the shell writes before the other process has left the screen
                t.wait("code %d" % (128 + number))
            t.assert_restored(before)
            wait_until("both have ended", WAIT, lambda: not t.pids())


@case
def a_stopped_top_gives_the_terminal_back_and_continues():
    with Daemon() as d, Terminal(d.start()) as t:
        jobs(d)
        t.wait("ready>")
        before = t.settings()
        t.type("jobctl top")
        t.send("Enter")
        t.wait("nightly", "[1 jobs]")
        t.send("C-z")
        t.wait("Stopped")
        assert t.value("alternate_on") == "0"
        t.type("fg")
        t.send("Enter")
        t.wait("nightly", "[1 jobs]")
        assert t.value("alternate_on") == "1"
        t.send("C-c")
        t.assert_restored(before)


@case
def a_long_list_is_read_page_by_page():
    with Daemon() as d, Terminal(d.start()) as t:
        specs = [{"name": "job-%04d" % i, "command": ["true"], "schedule": ["manual"]} for i in range(450)]
        status, answer = d.api().call("POST", "/v1/jobs/bulk", {"jobs": specs})
        assert status in (200, 201), answer
        t.start()
        t.wait("page 1, more", "job-0000", "450 active")
        t.send("G")
        t.wait("job-0199", absent=["job-0000"])
        t.send("j")
        t.wait("page 2, more", "job-0200")
        t.send("G")
        t.send("j")
        t.wait("page 3", "job-0400", absent=["more"])
        t.send("k")
        t.wait("page 2", "job-0399")
        t.send("g")
        t.wait("page 1", "job-0000")
        t.send("q")


@case
def batch_mode_prints_lines_for_scripts():
    with Daemon() as d:
        d.start()
        jobs(d)
        lines = d.jobctl("top", "-b", "-n1").stdout.splitlines()
        assert "3 jobs active" in lines[0] and lines[1].startswith("ID") and len(lines) == 5, lines
        assert "default" in d.jobctl("top", "-b", "-n1", "--view", "queues").stdout
        assert d.jobctl("top", "-b", "-n2", "-d1", "-o", "name").stdout.split() == ["nightly", "talks", "hand"] * 2
        r = d.jobctl("top", check=False, stdin=subprocess.DEVNULL)
        assert r.returncode == 2 and "must be a terminal; 'jobctl top -b -n 1' prints once" in r.stderr, r
        r = d.jobctl("top", "--view", "trees", check=False)
        assert r.returncode == 2 and "'trees' is not jobs, runs, queues or nodes" in r.stderr, r
        with Terminal(d, term="no-such-terminal") as t:
            t.wait("ready>")
            t.type("jobctl top; echo code $?")
            t.send("Enter")
            t.wait("the type of the terminal, 'no-such-terminal', is not known", "code 2")
        d.stop()
        r = subprocess.run(["script", "-qec", JOBCTL + " top", "/dev/null"], env=d.env, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL)
        assert r.returncode == 5 and "no daemon answers" in r.stdout, r


main()
