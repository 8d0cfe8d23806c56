# SPDX-License-Identifier: Apache-2.0
# One scenario: nodes, six jobs, one failpoint that fires, and the judgement of the result.
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "nemesis"), os.path.join(HERE, "..", "integration")]
import nemesis
from adapter import Base, Node, Sqlite
from harness import BUILD, Api, Unreachable
from pg import Server
from points import POINTS

LEASE = RUN_LEASE = 3
STOP = 5                # seconds; longer than the lease of three seconds
QUICK, GONE = 0.4, 6.0  # seconds until the supervisor restarts a process
SETTLE = 60             # seconds; a scenario that takes longer hangs
RENEWED = LEASE * 0.6   # a node that is away for less keeps its lease, which is renewed after a third
RECORDED = 1.0          # seconds; an end that is older must have been recorded
LOOSE = dict(eps=60, takeover=60, recover=60, min_slots=1, min_faults=0)
MAY_END = {0, 75, -signal.SIGKILL}  # allowed exit statuses of an engine: stopped, to be restarted, killed
LOST = 5                # the outcome of an attempt whose node was lost
STALE = 8               # the outcome of an attempt that was reported after another node had taken the run over
CLOCK_OF_DAY = 10 ** 15 # microseconds; a smaller time in the store is one of CLOCK_BOOTTIME
HELD = "SELECT node, id, attempt + CASE WHEN state = 1 THEN 1 ELSE 0 END FROM runs WHERE state IN (1, 2)"
NODES = "SELECT id, name FROM nodes"


def built():
    """Whether the programs were built with failpoints."""
    with open(os.path.join(BUILD, "config.h")) as f:
        return "#define JOBSCHED_FAILPOINTS 1" in f.read()


def sockets(directory, names):
    """Members that cannot be copied."""
    return [n for n in names if stat.S_ISSOCK(os.lstat(os.path.join(directory, n)).st_mode)]


class Lane:
    """Runs cases one after another. Its PostgreSQL server is started when it is first needed."""

    def __init__(self, number, keep=None):
        self.number, self.keep, self.server, self.cases = number, keep, None, 0

    def database(self):
        if not self.server:
            self.server = Server().start()
        self.cases += 1
        name = "case%d" % self.cases
        self.sql("postgres", "CREATE DATABASE " + name)
        return name

    def sql(self, database, text):
        done = subprocess.run([os.path.join(self.server.bin, "psql"), "-X", "-q", "-A", "-t", "-F", "\t", "-h", self.server.dir, "-U", "jobsched",
                               "-c", text, database], check=True, capture_output=True, text=True)
        return [[int(v) if v.lstrip("-").isdigit() else v for v in line.split("\t")] for line in done.stdout.splitlines()]

    def close(self):
        if self.server:
            self.server.__exit__()
            self.server = None


class Postgres(Base):
    """One database of the lane's server."""

    def __init__(self, work, nodes, lane):
        super().__init__(work, nodes)
        self.lane, self.name = lane, lane.database()

    def config(self, node):
        return "store = postgresql://jobsched@/%s?host=%s\n" % (self.name, self.lane.server.dir)

    def query(self, text):
        return self.lane.sql(self.name, "SET search_path = jobsched; " + text)


def job(name, start, period, count, dur, fails=0, attempts=8, overlap="allow"):
    return dict(name=name, key="k-" + name, start_ms=start, period_ms=period * 1000, count=count, dur=dur, fails=fails,
                max_attempts=attempts, overlap=overlap, may_skip=False, ack="info", ack_t=0)


def make_jobs(start):
    """Non-overlapping and longer than its period; plain; failing at first; failing always; to be cancelled; to be deleted."""
    return [job("solo", start, 1, 5, 1.3, overlap="forbid"), job("plain", start, 1, 6, 0.3), job("flaky", start, 2, 3, 0.1, fails=1),
            job("doomed", start, 2, 2, 0.05, fails=99, attempts=2), job("cancelled", start, 60, 1, 90, overlap="forbid"),
            job("deleted", start, 1, 30, 0.1)]


class Case:
    def __init__(self, lane, name, action, store):
        self.lane, self.name, self.action, self.store = lane, name, action, store
        self.label = "%s:%s:%s" % (name, action, store)
        self.point = POINTS[name]
        self.how = (store != "one" and self.point.several) or self.point.how
        self.note, self.begin = "", 0
        self.fired = None       # time of day
        self.fired_node = self.fired_pid = None
        self.hit = set()        # "run/attempt" that may run again; see struck()
        self.found = []
        self.down = {}          # node: time of its restart
        self.away = {}          # node: (since, runs that it held)
        self.hold = QUICK
        self.over = threading.Event()
        self.at = {}            # time of each acknowledged request

    # ---- the nodes ----

    def item(self):
        error = (self.store == "postgres" and self.point.server_error) or self.point.error
        action = {"kill": "kill", "gone": "kill", "stop": "stop:%d" % STOP, "error": "error:%s" % error}[self.action]
        return "%s=%s@%d" % (self.name, action, (self.store == "one" and self.point.alone) or self.point.nth)

    def armed(self, node, again):
        """Whether the next process of this node gets the failpoint. A mark file makes sure that it fires once."""
        if self.how == "engine-restarts":
            return again
        if self.how == "leader-dies":
            return node != "n0"
        return True

    def start(self, node, again=False):
        if node not in self.ad.node:
            self.ad.node[node] = Node(self.work, node, "node-name = %s\nmax-running = 64\nlease = %d\nrun-lease = %d\n%s" % (node, LEASE, RUN_LEASE, self.ad.config(node)))
        env = self.ad.node[node].env
        env.pop("JOBSCHED_FAILPOINTS", None)
        if self.armed(node, again):
            more = ",spawn.pre_fork=error:EAGAIN@2" if self.how == "no-fork" else ""
            env.update(JOBSCHED_FAILPOINTS=self.item() + more, JOBSCHED_FAILPOINTS_DIR=self.marks)
        self.ad.procs[node] = self.ad.node[node].start()

    def held(self, nodes):
        """The "run/attempt" that these nodes hold by the store and by the process list."""
        found = set()
        for node in nodes:
            found |= set(self.ad.workers(node).values())
        with contextlib.suppress(Exception):
            names = dict(map(tuple, self.ad.query(NODES)))
            found |= {"%d/%d" % (run, attempt) for node, run, attempt in self.ad.query(HELD) if names.get(node) in nodes}
        return found

    # ---- supervision ----

    def see_mark(self):
        """The failpoint has fired: notes the node and the runs that it held."""
        path = os.path.join(self.marks, self.item())
        if self.fired or not os.path.exists(path):
            return
        self.fired = time.time()
        with open(path) as f:
            self.fired_pid = int(f.read() or 0)
        for node in self.ad.nodes:
            p = self.ad.procs.get(node)
            if (p and p.pid == self.fired_pid) or self.fired_pid == self.spawners.get(node):
                self.fired_node = node
        self.spawner_struck = self.point.where == "spawner" and self.action in ("kill", "gone")
        if self.action == "stop" and self.point.where == "engine":
            # the file is locked: no node can renew, and every spawner ends the runs that must not run twice
            all_of_them = self.point.inside and self.store == "sqlite"
            self.away_from(self.ad.nodes if all_of_them else [self.fired_node])
        self.hold = GONE if self.action == "gone" else QUICK

    def away_from(self, nodes):
        for node in nodes:
            if node:  # a node that stops again before its return counts as away for the whole time
                since, held = self.away.get(node, (time.time(), set()))
                self.away[node] = (since, held | self.held([node]))

    def supervise(self):
        """Restarts ended processes after a delay, as a supervisor does."""
        while not self.over.wait(0.03):
            self.see_mark()
            for node in list(self.ad.node):
                if not os.path.exists("/proc/%s" % self.spawners.get(node)):
                    self.spawners[node] = self.ad.spawner(node)
            for node, p in list(self.ad.procs.items()):
                if p.poll() is None:
                    continue
                if node not in self.down:
                    if p.returncode not in MAY_END:
                        self.found.append("crash: %s ended with %d" % (node, p.returncode))
                    self.see_mark()
                    self.away_from([node])
                    self.down[node] = time.time() + (self.hold if p.pid == self.fired_pid else self.holds.pop(node, QUICK))
                elif time.time() >= self.down[node]:
                    del self.down[node]
                    self.start(node, again=True)
            self.see_who_is_back()

    def see_who_is_back(self):
        for node, (since, held) in list(self.away.items()):
            if self.action == "stop" and time.time() < since + STOP and self.ad.procs[node].poll() is None:
                continue
            if node in self.down or not self.ad.ready(node):
                continue
            del self.away[node]
            if time.time() - since > RENEWED and self.store != "one":
                self.hit |= held

    def busy(self, nodes):
        """A node that holds runs."""
        end = time.time() + 3
        while time.time() < end:
            for node in nodes:
                if self.ad.workers(node):
                    return node
            time.sleep(0.05)
        return nodes[0]

    def provoke(self):
        """Triggers the event that leads to this failpoint."""
        if self.how in ("run", "no-fork"):
            return
        time.sleep(max(0, self.begin / 1000 + 2.5 - time.time()))
        node = "n0"
        if self.how in ("node-dies", "spawner-stops", "spawner-dies"):
            node = self.busy(self.ad.nodes[self.how == "node-dies" and self.store != "one":])
        if self.how in ("node-dies", "leader-dies", "engine-restarts"):
            self.holds[node] = QUICK if self.how == "engine-restarts" else GONE
            self.ad.procs[node].kill()
        elif self.how == "engine-leaves":
            self.ad.procs[node].terminate()
        elif self.how == "spawner-reloads":
            os.kill(self.ad.spawner(node), signal.SIGHUP)
        elif self.how == "spawner-dies":
            pid = self.ad.spawner(node)
            self.hit |= self.held([node])
            os.kill(pid, signal.SIGKILL)
        elif self.how == "spawner-stops":  # without an engine, so that the spawner keeps the ends
            pid = self.ad.spawner(node)
            self.hit |= self.held([node])
            self.holds[node] = 2.0
            self.ad.procs[node].kill()
            os.kill(pid, signal.SIGTERM)

    # ---- requests of clients ----

    def ask(self, what, method, path, body, good, first=0):
        """Repeats a request until the answer is definite, and returns it."""
        self.at[what] = [time.time(), None]
        end = time.time() + SETTLE
        for i in range(first, 10000):
            with contextlib.suppress(Unreachable):
                status, answer = Api(self.ad.node[self.ad.nodes[i % len(self.ad.nodes)]].socket, 15).call(method, path, body)
                if status in good:
                    self.at[what][1] = time.time()
                    return answer
                unknown = status >= 500 and answer["error"]["code"] == "uncertain"
                if status not in (429, 503, 507) and not unknown:
                    self.found.append("%s: answered %d %s" % (what, status, answer))
                    return None
            if time.time() > end or self.over.is_set():
                self.found.append("%s: never answered" % what)
                return None
            time.sleep(0.1)

    def submit(self, j):
        start = datetime.fromtimestamp(j["start_ms"] // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        command = ["/bin/bash", self.work + "/body.sh", j["name"], str(j["dur"]), str(int(j["overlap"] == "forbid")), str(j["fails"]),
                   self.work + "/ledger"]
        answer = self.ask("submit " + j["name"], "POST", "/v1/jobs", dict(
            name=j["name"], key=j["key"], command=command, tz="UTC", catchup="all:1000", retries=j["max_attempts"] - 1, backoff="fixed:100ms",
            schedule=["R%d/%s/PT%dS" % (j["count"], start, j["period_ms"] // 1000)],
            overlap="queue:1000" if j["overlap"] == "forbid" else "allow"), (200, 201))
        if answer:
            j["id"], j["ack"], j["ack_t"] = answer["id"], "ok", time.time()

    def people(self):
        by_name = {j["name"]: j for j in self.jobs}
        threads = [threading.Thread(target=self.submit, args=(j,)) for j in self.jobs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if any(j["ack"] != "ok" for j in self.jobs):
            return
        time.sleep(max(0, self.begin / 1000 + 3.1 - time.time()))
        # 409 and 404: an earlier request succeeded and its answer was lost
        self.ask("cancel", "POST", "/v1/jobs/%s/cancel" % by_name["cancelled"]["id"], {"running": True}, (200, 409))
        time.sleep(max(0, self.begin / 1000 + 4.1 - time.time()))
        self.ask("delete", "DELETE", "/v1/jobs/%s" % by_name["deleted"]["id"], None, (200, 404))

    # ---- a case ----

    def run(self):
        self.work = tempfile.mkdtemp(prefix="jobsched-fp.")
        self.marks = os.path.join(self.work, "marks")
        os.mkdir(self.marks)
        self.spawners, self.holds, self.spawner_struck = {}, {}, False
        for name, text in (("body.sh", nemesis.BODY), ("ledger", "")):
            with open(os.path.join(self.work, name), "w") as f:
                f.write(text)
        nodes = ["n%d" % i for i in range(1 if self.store == "one" else 3)]
        self.ad = Postgres(self.work, nodes, self.lane) if self.store == "postgres" else Sqlite(self.work, nodes)
        keeper = threading.Thread(target=self.supervise, daemon=True)
        try:
            self.live(nodes, keeper)
            self.judge()
        except Exception as e:  # a case that cannot run is a violation
            self.found.append("broken: %r" % e)
        finally:
            self.over.set()
            if keeper.ident:
                keeper.join()
            self.ad.stop()
            self.look_at_logs()
            self.put_away()
        return self.found

    def live(self, nodes, keeper):
        self.start("n0")
        keeper.start()
        if len(nodes) > 1:
            self.wait("n0 serves", lambda: self.ad.ready("n0"))  # n0 becomes the leader
        for node in nodes[1:]:
            self.start(node)
        self.wait("all serve", lambda: all(self.ad.ready(n) for n in nodes))
        early = self.action == "stop" and self.name.startswith(("submit.", "mat."))  # the failpoint may fire before all jobs exist
        self.begin = (int(time.time()) + 3 + early * (STOP + 1)) * 1000
        self.jobs = make_jobs(self.begin)
        threads = [threading.Thread(target=self.people), threading.Thread(target=self.provoke)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        time.sleep(max(0, self.begin / 1000 + 6 - time.time()))
        with contextlib.suppress(AssertionError):  # the judge reports what hangs
            self.wait("everything is settled", self.settled)
        time.sleep(0.2)

    def wait(self, what, condition):
        end = time.time() + SETTLE
        while not condition():
            assert time.time() < end, "timeout: " + what
            time.sleep(0.1)

    def settled(self):
        if self.down or self.away or self.ad.workers():
            return False
        try:
            final = {(h["job"], h["slot"]) for h in self.ad.list_runs() if not h["attempt"] and h["state"] != "open"}
        except Exception:
            return False
        return all((j["name"], s) in final for j in self.jobs if j["name"] != "deleted" for s in nemesis.slots(j)) and \
            all(self.ad.ready(n) for n in self.ad.nodes)

    # ---- the judgement ----

    def lapsed(self):
        """The "run/attempt" that were ended because their node had not renewed its lease, by the times in the store."""
        boot = int((time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)) * 1000000)
        renewed = {node: at if at >= CLOCK_OF_DAY else at + boot for node, at in self.ad.query("SELECT id, renewed_at FROM nodes")}
        return {"%d/%d" % (run, number) for run, number, node, ended in
                self.ad.query("SELECT run, number, node, ended_at FROM attempts WHERE outcome = %d" % LOST)
                if node in renewed and ended - renewed[node] > RENEWED * 1000000}

    def taken_over(self):
        """The "run/attempt" whose next attempt started when the run lease of their lost node was over, by the times in the store."""
        boot = int((time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)) * 1000000)
        rows = self.ad.query("SELECT a.run, a.number, n.runs_until, b.started_at FROM attempts a JOIN nodes n ON n.id = a.node "
                             "JOIN attempts b ON b.run = a.run AND b.number = a.number + 1 WHERE n.lost = 1 AND a.outcome = %d" % STALE)
        return {"%d/%d" % (run, number) for run, number, until, started in rows if started >= until + (0 if until >= CLOCK_OF_DAY else boot)}

    def struck(self, bodies, history):
        """Adds the runs that the failpoint itself affected."""
        self.hit |= self.lapsed() | self.taken_over()
        if self.spawner_struck and self.fired:
            # workers die with their spawner, and unreported ends are lost with it
            for h in history:
                if h["attempt"] and h["state"] == "lost" and h["node"] == self.fired_node:
                    self.hit.add("%s/%d" % (h["run"], h["attempt"]))
        if self.point.where == "child" and self.action == "kill":
            bare = [h for h in history if h["attempt"] and h["state"] == "failed" and h["signal"] == 9 and h["node"] and
                    not any(b["id"] == "%s/%d" % (h["run"], h["attempt"]) for b in bodies)]
            if len(bare) > 1:
                self.found.append("%d attempts failed without a body" % len(bare))
            self.hit |= {"%s/%d" % (h["run"], h["attempt"]) for h in bare[:1]}
        strikes = [t for t in (self.fired, self.begin / 1000 + 2.5) if t]
        late = min(strikes) - RECORDED
        self.hit -= {b["id"] for b in bodies if b["e"] and b["e"] < late}

    def judge(self):
        if not self.fired:
            self.found.append("never passed: %s" % self.item())
        bodies, bad = nemesis.read_ledger(os.path.join(self.work, "ledger"))
        self.bodies = bodies
        names = dict(map(tuple, self.ad.query(NODES)))
        more = {(str(run), number): (names.get(node), sig) for run, number, node, sig in
                self.ad.query("SELECT run, number, node, term_signal FROM attempts")}
        history = self.ad.list_runs()
        for h in history:
            h["node"], h["signal"] = more.get((h["run"], h["attempt"]), (None, 0))
        self.struck(bodies, history)
        gone = self.at.get("delete", [time.time()])[0]
        cut = {j["name"]: j for j in self.jobs}["deleted"]
        cut["count"] = len([s for s in nemesis.slots(cut) if s / 1000 < gone - 1.5])
        counted = {(j["name"], s) for j in self.jobs if j["name"] != "cancelled" for s in nemesis.slots(j)}
        faults = [dict(kind=self.action, t=self.fired or 0, end=self.fired or 0, outage=True, victims=sorted(self.hit))]
        report = nemesis.check([j for j in self.jobs if j["name"] != "cancelled"], [b for b in bodies if (b["job"], b["slot"]) in counted],
                               [h for h in history if (h["job"], h["slot"]) in counted], faults, LOOSE, (), bad)
        self.found += [v for v in report["violations"] if not self.lost_only(v, history) and not self.never_due(v)]
        self.judge_rest(bodies, history)
        self.note = "%d bodies, %d excused%s" % (len(bodies), report["figures"].get("dups_excused", 0),
                                                  ", %s struck" % self.fired_node if self.fired_node else "")

    def never_due(self, v):
        """Slots that were still waiting when their job was deleted are cancelled with the job."""
        return v["job"] == "deleted" and (v["rule"] == "unlabelled" or v["why"] in ("state cancelled, 0 bodies", "state cancelled") or
                                          (v["why"] == "body succeeded, history says cancelled" and self.was_hit(v)))

    def was_hit(self, v):
        return any(b["id"] in self.hit for b in self.bodies if (b["job"], b["slot"]) == (v["job"], v["slot"]))

    def lost_only(self, v, history):
        """Attempts that were lost by the fault use up no retry; the judge must not count them."""
        if v["rule"] != "retries":
            return False
        mine = [h for h in history if (h["job"], h["slot"]) == (v["job"], v["slot"])]
        limit = {j["name"]: j["max_attempts"] for j in self.jobs}[v["job"]]
        honest = [h for h in mine if h["attempt"] and h["state"] not in ("lost", "stale")]
        return any(h["state"] == "dead" for h in mine if not h["attempt"]) and len(honest) <= limit

    def judge_rest(self, bodies, history):
        asked = {what: times[1] for what, times in self.at.items()}
        for b in bodies:
            what = {"cancelled": "cancel", "deleted": "delete"}.get(b["job"])
            # starts that were queued behind a stopped spawner or a stopped child continue with it
            still = self.fired + STOP if self.fired and self.action == "stop" and self.point.where != "engine" else 0
            if what and asked.get(what) and b["s"] > max(asked[what], still) + 1:
                self.found.append("ran-on: %s began %.1f s after it was %s" % (b["job"], b["s"] - asked[what], b["job"]))
        mine = [h for h in history if h["job"] == "cancelled" and not h["attempt"]]
        if asked.get("cancel") and [h["state"] for h in mine] != ["cancelled"]:
            self.found.append("not cancelled: %s" % [h["state"] for h in mine])
        for earlier, later in zip(*[[b for b in bodies if b["job"] == "cancelled"][i:] for i in (0, 1)]):
            if earlier["id"] not in self.hit:
                self.found.append("duplicate: %s after %s of the cancelled job" % (later["id"], earlier["id"]))
        for h in history:
            if h["attempt"] and h["state"] == "running":
                self.found.append("open: attempt %s/%d of %s" % (h["run"], h["attempt"], h["job"]))
        have = sorted(self.ad.list_jobs())
        want = sorted(j["name"] for j in self.jobs if j["ack"] == "ok" and not (j["name"] == "deleted" and asked.get("delete")))
        if have != want:
            self.found.append("job-set: %s instead of %s" % (have, want))
        if self.ad.query("SELECT 1 FROM running_jobs"):
            self.found.append("a place of a job is still taken")
        self.found += ["leftover: %s pid %d" % (r, p) for p, r in self.ad.workers().items()]
        with contextlib.suppress(Unreachable):
            status, answer = self.ad.api(self.ad.nodes[-1]).call("GET", "/v1/db/check")
            if status != 200 or answer.get("problems"):
                self.found.append("store: %s %s" % (status, answer))

    def look_at_logs(self):
        for node in self.ad.node.values():
            for path in (os.path.join(node.dir, "log"), os.path.join(node.dir, "run", "jobsched", "spawner.log")):
                with contextlib.suppress(OSError), open(path, errors="replace") as f:
                    text = f.read()
                    for mark in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "Assertion"):
                        if mark in text:
                            self.found.append("sanitizer: " + text[text.index(mark):][:600])

    def put_away(self):
        if self.store == "postgres":
            with contextlib.suppress(Exception):
                if self.found and self.lane.keep:
                    with open(os.path.join(self.work, "dump"), "w") as f:
                        for table in ("jobs", "runs", "attempts", "nodes", "leases", "events"):
                            f.writelines("%s %s\n" % (table, row) for row in self.ad.query("SELECT * FROM " + table))
                self.lane.sql("postgres", "DROP DATABASE %s WITH (FORCE)" % self.ad.name)
        if self.found and self.lane.keep:
            to = os.path.join(self.lane.keep, self.label)
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(self.work, to, symlinks=True, ignore=sockets)
            with open(os.path.join(to, "case.json"), "w") as f:
                json.dump(dict(found=[str(v) for v in self.found], fired=self.fired, node=self.fired_node, hit=sorted(self.hit), at=self.at), f, indent=1)
        shutil.rmtree(self.work, ignore_errors=True)
