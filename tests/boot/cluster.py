#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A cluster of containers with systemd, set up with the commands of the README: upgrades, power failures, network failures,
# reboots. Prints TAP with measurements. Not part of the suite: it needs root, some minutes and 2 GB of memory.
#
# usage: tests/boot/cluster.py [CASE...]    with top_builddir set; TRIALS=n power failures, KEEP=1 keeps the console logs
#        tests/boot/cluster.py --stay       sets up the cluster, prints how to enter it and waits for an interrupt
import datetime
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from image import Skip, dependencies, make_root, need, packages
from machines import NET, Machines, alone, wait_until

NODES = ("n1", "n2", "n3")
PASSWORD = "sesame"
LEASE = 15       # the defaults
RUN_LEASE = 60
PATIENCE = 150   # seconds, long enough for a loaded machine
BASE = {"systemd", "systemd-sysv", "libpam-systemd", "dbus", "sudo", "iproute2", "procps"}
CASES = []


def case(f):
    CASES.append(f)
    return f


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# ---- the commands of the README ----

def chapter():
    with open(os.path.join(HERE, "../../README")) as f:
        return re.search(r"\nA cluster\n(.*?)\nJobs that a machine kept", f.read(), re.S).group(1)


def commands():
    """The commands for the server and those for each node. A 'cat' lists a file to write; remarks on the right are removed."""
    server, machines = chapter().split("\nRoot's jobs", 1)[0].split("\nOn each machine", 1)
    found = []
    for part in (server, machines):
        words = []
        for line in part.splitlines():
            if line.startswith("    $ "):
                words.append(re.sub(r"(?<=\S)   +\S.*", "", line[6:]))
            elif line.startswith("    "):
                words[-1] += "\n" + line.strip()
        found.append([typed(w) for w in words])
    return found


def typed(text):
    if text.startswith("cat "):
        first, rest = text.split("\n", 1)
        text = "sudo tee %s >/dev/null <<'END'\n%s\nEND" % (first[4:].strip(), rest)
    return text.replace("192.0.2.0/24", NET + ".0/24").replace("PASSWORD", PASSWORD)


# ---- the cluster ----

class Cluster:
    def __init__(self, machines, payload):
        self.machines, self.payload = machines, payload
        self.names = 0

    def __getitem__(self, name):
        return self.machines[name]

    def ask(self, name, text, user="root"):
        return json.loads(self[name].sh("jobctl --json " + text, user=user).stdout)

    def nodes(self, at="n1"):
        """The nodes by name; empty while the daemon does not answer."""
        done = self[at].sh("jobctl --json nodes", check=False)
        return {v["name"]: v for v in json.loads(done.stdout)} if done.returncode == 0 else {}

    def wait_alive(self, *names):
        for name in names or NODES:
            wait_until(name + " reports all nodes alive with segments", PATIENCE, lambda: all(
                self.nodes(name).get(n, {}).get("state") == "alive" and self.nodes(name)[n]["segments"] for n in NODES), 0.3)

    def add(self, at, options, command):
        """Adds a job of alice and returns its name."""
        self.names += 1
        name = "job%d" % self.names
        self[at].sh("jobctl add -n %s %s -- sh -c '%s'" % (name, options, command), user="alice")
        return name

    def run(self, at, job):
        """The last run of a job."""
        return self.ask(at, "runs --limit 1 " + job)[0]

    def running(self, at, jobs):
        return wait_until("the jobs run", PATIENCE, lambda: [r for r in [[self.run(at, job) for job in jobs]]
                                                       if all(v["state"] == "running" for v in r)], 0.3)[0]

    def on_each(self, options=""):
        """Starts a long job on each node. Returns the names of the jobs by the name of the node."""
        jobs = {}
        for name in NODES:
            others = [n for n in NODES if n != name]
            for other in others:
                self["n1"].sh("jobctl node drain " + other)
            jobs[name] = self.add(name, options, "echo $JOBSCHED_NODE $JOBSCHED_ATTEMPT; exec sleep 3600")
            run = self.running(name, [jobs[name]])[0]
            assert run["node_name"] == name, run
            for other in others:
                self["n1"].sh("jobctl node undrain " + other)
        self.wait_alive()
        return jobs

    def forget(self, *jobs):
        for job in jobs:
            self["n2"].sh("jobctl cancel --running %s; jobctl rm -y %s" % (job, job), check=False)

    def ticks(self, n=24):
        """Adds jobs that are due every second, enough for every node to plan some of them."""
        return [self.add("n1", "--every 1s --overlap allow --catchup all", "true") for _ in range(n)]

    def lateness(self, jobs, since, at="n2"):
        """The largest delay of a slot in seconds. Fails if a slot is missing or was run twice."""
        worst = 0
        for job in jobs:
            runs = [r for r in self.ask(at, "runs --limit 500 " + job) if instant(r["slot"]) >= since and r["state"] != "queued"]
            slots = sorted(instant(r["slot"]) for r in runs)
            assert slots == [slots[0] + i for i in range(len(slots))], "%s lost or repeated a slot" % job
            assert all(r["state"] == "succeeded" for r in runs if r["ended_at"]), {r["state"] for r in runs}
            worst = max([worst] + [instant(r["first_start"]) - instant(r["slot"]) for r in runs if r["first_start"]])
        return worst


def share_key(c, *names):
    """Copies the warrant key to other nodes, instead of the scp of the README, and reloads the spawners."""
    key = "/var/lib/jobsched-spawner/warrant.key"
    for name in names:
        shutil.copy2(c["n1"].path(key), c[name].path(key))
        c[name].sh("systemctl reload jobsched-spawner")


@case
def the_readme_commands_set_up_a_cluster(c):
    server, each = commands()
    for text in server:
        c["db"].sh(text, user="admin", stdin=2 * (PASSWORD + "\n"))
    for name in NODES:
        c[name].sh("sudo apt-get install -q -y /payload/jobsched-1.deb", user="admin")
        for text in each:
            said = c[name].sh(text, user="admin")
        assert re.search(r"^%s +alive" % name, said.stdout, re.M), said
    share_key(c, *NODES[1:])
    c.wait_alive()
    for name in NODES:
        assert c[name].sh("systemctl is-failed jobschedd jobsched-spawner jobschedd.socket", check=False).stdout.split() == ["active"] * 3
        assert c[name].sh("systemctl is-system-running", check=False).stdout.strip() == "running"
        st = os.stat(c[name].path("/var/lib/jobsched/.pgpass"))
        assert st.st_mode & 0o777 == 0o600, st


@case
def a_job_is_visible_on_all_machines(c):
    job = c.add("n1", "", "echo by $JOBSCHED_NODE; id -un")
    wait_until("the run has ended", PATIENCE, lambda: c.run("n2", job)["state"] == "succeeded")
    where = c.run("n3", job)["node_name"]
    for name in NODES:
        assert c[name].sh("jobctl log " + job, user="alice").stdout == "by %s\nalice\n" % where
    c.forget(job)


@case
def a_job_of_root_runs_on_every_machine(c):
    for name in NODES:
        for other in NODES:
            c["n1"].sh("jobctl node %s %s" % ("undrain" if other == name else "drain", other))
        c["n1"].sh("jobctl add -n of-root-%s -- id -u" % name)
        run = wait_until("the run has ended", PATIENCE, lambda: [r for r in [c.run("n1", "of-root-" + name)] if r["ended_at"]])[0]
        assert (run["state"], run["node_name"]) == ("succeeded", name), (run, c["n1"].sh("jobctl why of-root-" + name).stdout)
    for name in NODES:
        c["n1"].sh("jobctl node undrain %s; jobctl rm -y of-root-%s" % (name, name))
    c.wait_alive()


@case
def a_rolling_upgrade_ends_no_job_and_loses_no_slot(c):
    jobs, ticks = c.on_each(), c.ticks()
    wait_until("each job has succeeded once", PATIENCE, lambda: all(c.ask("n1", "runs --state succeeded --limit 1 " + t) for t in ticks))
    since = time.time()
    for name in NODES:
        c[name].sh("sudo apt-get install -q -y /payload/jobsched-2.deb", user="admin")
        c.wait_alive()
    time.sleep(3)
    late = c.lateness(ticks, since)
    for name, job in jobs.items():
        run = c.run("n1", job)
        assert (run["state"], run["attempt"], run["node_name"]) == ("running", 1, name), run
    c.forget(*jobs.values(), *ticks)
    return "%d jobs due every second: slots late by at most %.2f s" % (len(ticks), late)


def trial(c, victim, ticks):
    """Cuts the power of one machine. Returns the delay until its run restarts, and the largest delay of a slot."""
    at = next(n for n in NODES if n != victim)
    jobs = c.on_each()
    since = time.time()
    c[victim].cut_power()
    wait_until("the node is lost", PATIENCE, lambda: c.nodes(at).get(victim, {}).get("state") == "lost", 0.3)
    run = wait_until("the second attempt has started", PATIENCE, lambda: [r for r in [c.run(at, jobs[victim])]
                                                            if r["attempt"] == 2 and r["started_at"]], 0.3)[0]
    assert run["lost"] == 1 and run["node_name"] != victim, run
    assert "lost on " + victim in c[at].sh("jobctl show '#%d'" % run["id"]).stdout
    for name in NODES:
        assert name == victim or c.run(at, jobs[name])["attempt"] == 1, c.run(at, jobs[name])
    late = c.lateness(ticks, since, at)
    c[victim].boot()
    c[victim].wait_up()
    c.wait_alive()
    c.forget(*jobs.values())
    return instant(run["started_at"]) - since, late


@case
def runs_restart_elsewhere_within_the_run_lease_after_a_power_failure(c):
    ticks, found = c.ticks(), []
    for i in range(int(os.environ.get("TRIALS", "3"))):
        found.append(trial(c, NODES[i % 3], ticks))
    c.forget(*ticks)
    took, late = (sorted(v) for v in zip(*found))
    assert took[-1] < RUN_LEASE + 10, found  # 10 s of tolerance for a slow machine
    return "%d trials: second attempt after %s s, slots late by at most %s s" % (
        len(found), " ".join("%.1f" % v for v in took), " ".join("%.1f" % v for v in late))


@case
def an_isolated_machine_reports_it_and_rejoins_without_help(c):
    jobs, free = c.on_each(), c.on_each("--overlap allow")
    victim, job, other = "n2", jobs["n2"], free["n2"]
    time.sleep(LEASE / 3 + 1)  # the spawner has received the deadline of the run lease
    c[victim].cut_off()
    wait_until("the status reports the lost store", PATIENCE, lambda: "away    since" in c[victim].sh("jobctl status", check=False).stdout, 0.3)
    wait_until("the node is lost", PATIENCE, lambda: c.nodes("n1").get(victim, {}).get("state") == "lost", 0.3)
    for name in (job, other):
        wait_until("the second attempt runs on another node", PATIENCE, lambda: [c.run("n1", name)][0]["attempt"] == 2 and c.run("n1", name)["state"] == "running", 0.3)
    left = int(c[victim].sh("pgrep -c -u alice -x sleep", check=False).stdout)
    assert left == 1, "%d of 2 jobs continue on the isolated machine, expected 1" % left
    assert "answers again" not in c[victim].sh("journalctl -q -b -u jobschedd -o cat --since=-60s").stdout
    began = time.time()
    c[victim].cut_off(on=False)
    c.wait_alive()
    back = time.time() - began
    c.forget(*jobs.values(), *free.values())
    return "back after %.1f s" % back


@case
def jobs_continue_while_the_database_machine_has_no_power(c):
    jobs, ticks = c.on_each(), c.ticks(6)
    wait_until("each job has succeeded once", PATIENCE, lambda: all(c.ask("n1", "runs --state succeeded --limit 1 " + t) for t in ticks))
    since = time.time()
    c["db"].cut_power()
    said = wait_until("jobctl reports the lost store", PATIENCE, lambda: [r for r in [c["n1"].sh("jobctl list", check=False)] if r.returncode == 1], 0.2)[0]
    assert "the store has been unavailable for" in said.stderr, said
    c["db"].boot()
    c.wait_alive()
    time.sleep(3)
    late = c.lateness(ticks, since)
    for name, job in jobs.items():
        run = c.run("n1", job)
        assert (run["state"], run["attempt"], run["node_name"]) == ("running", 1, name), run
    c.forget(*jobs.values(), *ticks)
    return "slots late by at most %.1f s" % late


@case
def a_reboot_counts_neither_as_a_failure_nor_as_a_loss(c):
    jobs = c.on_each()
    c["n3"].sh("systemctl --no-block reboot")
    wait_until("the second attempt runs on another node", PATIENCE, lambda: c.run("n1", jobs["n3"])["attempt"] == 2, 0.3)
    c.wait_alive()
    run = c.run("n1", jobs["n3"])
    assert (run["state"], run["lost"], run["failures"]) == ("running", 0, 0), run
    c.forget(*jobs.values())


@case
def machines_that_boot_before_the_database_report_why_they_wait(c):
    for machine in c.machines.all.values():
        machine.cut_power()
    for name in NODES:
        c[name].boot()
    for name in NODES:
        c[name].wait_up()
        said = c[name].sh("jobctl nodes", check=False)
        assert said.returncode == 1 and "could not connect to the store" in said.stderr, said
        assert c[name].sh("systemctl is-system-running", check=False).stdout.strip() == "running"
        assert "could not connect" in c[name].sh("systemctl status jobschedd").stdout
    began = time.time()
    c["db"].boot()
    c.wait_alive()
    return "all nodes alive %.1f s after the database machine was started" % (time.time() - began)


@case
def a_node_without_network_permission_names_network_conf(c):
    place = "/etc/systemd/system/jobschedd.service.d/network.conf"
    c["n3"].sh("mv %s /var/tmp/ && systemctl daemon-reload && systemctl restart jobschedd" % place)
    said = c["n3"].sh("jobctl nodes", check=False)
    assert said.returncode == 1 and "network.conf" in said.stderr, said
    c["n3"].sh("mv /var/tmp/network.conf %s && systemctl daemon-reload && systemctl restart jobschedd" % place)
    c.wait_alive()


@case
def a_user_scheduler_works_beside_the_system_scheduler(c):
    own = "export XDG_RUNTIME_DIR=/run/user/1101; "
    c["n1"].sh("loginctl enable-linger alice")
    wait_until("alice's service manager runs", PATIENCE, lambda: c["n1"].sh(own + "systemctl --user is-system-running", user="alice",
                                                                   check=False).stdout.strip() == "running")
    c["n1"].sh(own + "systemctl --user enable --now jobschedd && jobctl --user add -n own -- sleep 3600", user="alice")
    wait_until("the job runs", PATIENCE, lambda: "running" in c["n1"].sh(own + "jobctl --user runs own", user="alice").stdout)
    c["n1"].sh(own + "systemctl --user restart jobschedd", user="alice")
    runs = json.loads(c["n1"].sh(own + "jobctl --user --json runs own", user="alice").stdout)
    assert [(r["state"], r["attempt"]) for r in runs] == [("running", 1)], runs
    assert "only permitted for main PID" not in c["n1"].sh("journalctl -q -b").stdout
    assert "own" not in c["n1"].sh("jobctl --system list").stdout
    c["n1"].sh(own + "jobctl --user cancel --running own && systemctl --user disable --now jobschedd", user="alice")
    c["n1"].sh("loginctl disable-linger alice")


@case
def jobctl_obtains_a_warrant_where_all_users_need_one(c):
    restart = "systemctl reload jobsched-spawner && systemctl restart jobschedd"
    for name in NODES:
        c[name].write("/etc/jobsched/spawner.conf", "require-warrant = all\n")
        c[name].sh(restart)
    c.wait_alive()
    for at in NODES:
        job = c.add(at, "", "id -un")
        run = wait_until("the run has ended", PATIENCE, lambda: [r for r in [c.run(at, job)] if r["ended_at"]])[0]
        assert run["state"] == "succeeded", run
        assert "uid 1101 has approved" in c[at].sh("journalctl -q -b -u jobsched-spawner -o cat").stdout
        c.forget(job)
    for name in NODES:
        os.unlink(c[name].path("/etc/jobsched/spawner.conf"))
        c[name].sh(restart)
    c.wait_alive()


@case
def runs_of_a_removed_node_restart_elsewhere_and_a_purge_affects_no_other_node(c):
    jobs = c.on_each()
    c["n3"].sh("sudo apt-get remove -q -y jobsched", user="admin")
    assert not c["n3"].sh("pgrep -a -f 'job[s]ched|sle[e]p 3600'", check=False).stdout
    wait_until("the second attempt runs on another node", PATIENCE, lambda: [r for r in [c.run("n1", jobs["n3"])]
                                                       if r["attempt"] == 2 and r["state"] == "running" and not r["lost"]], 0.3)
    assert c.nodes("n1")["n3"]["state"] == "stopped", c.nodes("n1")
    c["n3"].sh("sudo apt-get purge -q -y jobsched", user="admin")
    for path in ("/var/lib/jobsched", "/var/lib/jobsched-net", "/var/lib/jobsched-spawner", "/run/jobsched"):
        assert not os.path.exists(c["n3"].path(path)) or not c["n3"].sh("ls -A " + path, check=False).stdout, path
    assert c["n1"].sh("jobctl log " + jobs["n1"]).stdout == "n1 1\n"
    c["n3"].sh("sudo apt-get install -q -y /payload/jobsched-2.deb", user="admin")
    for text in commands()[1]:
        c["n3"].sh(text, user="admin")
    share_key(c, "n3")
    c.wait_alive()
    c.forget(*jobs.values())


# ---- the test program ----

def add_users(machine):
    for name, number in (("admin", 1100), ("alice", 1101)):
        machine.sh("useradd -m -u %d -s /bin/bash %s" % (number, name))
    machine.sh("echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin")


def journals(c):
    for machine in c.machines.all.values():
        if machine.leader():
            said = machine.sh("journalctl -q -b -n 15 --no-pager -o short -u jobschedd", check=False).stdout
            print("\n".join("# %s: %s" % (machine.name, line) for line in said.splitlines()))


def run_cases(c, wanted):
    done = 0
    for f in [f for f in CASES if not wanted or f.__name__ in wanted or f is CASES[0]]:
        done, began = done + 1, time.monotonic()
        try:
            note = f(c)
            print("ok %d - %s\n# %.0f s%s" % (done, f.__name__, time.monotonic() - began, "; " + note if note else ""), flush=True)
        except Exception:
            print("not ok %d - %s" % (done, f.__name__))
            print("\n".join("# " + line for line in traceback.format_exc().splitlines()))
            journals(c)
            break  # each case needs the state that the previous one left
    print("1..%d" % done, flush=True)


def stay(c):
    print("# the cluster is ready; to enter a machine: nsenter -t PID -a -r -w bash", flush=True)
    while True:
        print("# " + "  ".join("%s: PID %d" % (m.name, m.leader()) for m in c.machines.all.values()), flush=True)
        time.sleep(60)


def main():
    wanted, payload, machines = sys.argv[1:], os.environ.get("JOBSCHED_BOOT_PAYLOAD"), None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        need("ip", "bridge", "nsenter", "unshare")
        if not payload:
            payload = os.environ["JOBSCHED_BOOT_PAYLOAD"] = tempfile.mkdtemp(prefix="jobsched-payload.")
            os.chmod(payload, 0o755)
            packages(payload)
        images = {"db": make_root(BASE | {"postgresql"})}
        images.update({name: make_root(BASE | set(dependencies(payload + "/jobsched-1.deb"))) for name in NODES})
        alone()
        machines = Machines(images, payload)
        c = Cluster(machines, payload)
        for machine in machines.all.values():
            machine.boot()
        for machine in machines.all.values():
            machine.wait_up()
            add_users(machine)
        if wanted == ["--stay"]:
            CASES[0](c)
            stay(c)
        run_cases(c, wanted)
    except Skip as reason:
        print("1..0 # SKIP %s" % reason)
    finally:
        if machines:
            machines.gone()
            if os.environ.get("KEEP"):
                print("# files kept in " + machines.work)
            else:
                shutil.rmtree(machines.work, ignore_errors=True)
        if payload:
            shutil.rmtree(payload, ignore_errors=True)


main()
