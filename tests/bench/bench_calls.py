# SPDX-License-Identifier: Apache-2.0
# Compares HTTP calls of jobs with the same requests by libcurl alone, and runs 100,000 calls that are due within a minute.
#
# usage: tests/bench/bench_calls.py [CALLS [PART...]]      with top_builddir set; parts: saturated 5ms 20ms 50ms https minute
#
# Both send the same method, body and headers on connections that stay open, to the same target on loopback, a C program whose
# CPU time is in the table. Both have the same number of requests under way at most: the target reports how many it saw at a time.
# 'cpu' is microseconds of CPU time per call. A run of jobsched is under way from its claim to the commit of its end.
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from harness import BUILD, Daemon, wait_until

BODY = '{"a": 1}'
PARALLEL = (64, 256)
MINUTE_RUNS = 100000
ROUNDS = 3
LIMITS = "http-allow = 127.0.0.0/8\nmax-running = %d\nsubmissions-per-second = 1000000\nsubmissions-burst = 1000000\n" \
         "bulk-jobs = 100000\nbulk-body-limit = 1G\njobs-per-uid = 1000000\n"


def cpu(pid):
    """CPU seconds of a process."""
    with open("/proc/%d/schedstat" % pid) as f:
        main = int(f.read().split()[0])
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            total += int(f.read().split()[0])
    return max(main, total) / 1e9


class Target:
    """The C program that answers, with HTTPS if it gets a certificate and its key."""

    def __init__(self, delay_ms, certificate=()):
        program = os.path.join(BUILD, "tests/bench/bench_target")
        self.process = subprocess.Popen([program, str(delay_ms * 1000), *certificate], stdout=subprocess.PIPE, text=True)
        self.url = "%s://127.0.0.1:%d/" % ("https" if certificate else "http", int(self.process.stdout.readline()))

    def cpu(self):
        return cpu(self.process.pid)

    def figures(self):
        """Returns since the last call: requests, the most that waited at a time, and new connections."""
        with urllib.request.urlopen(self.url + "figures") as answer:
            return [int(word) for word in answer.read().split()]

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        self.process.terminate()
        self.process.wait()


def alone(target, calls, parallel):
    """Returns seconds and CPU seconds of libcurl alone."""
    program = [os.path.join(BUILD, "tests/bench/bench_curl"), target.url, str(calls), str(parallel)]
    return [float(word) for word in subprocess.run(program, check=True, capture_output=True, text=True).stdout.split()]


def text_of(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


class Ours:
    """Runs that many calls, due at one instant or spread over some seconds."""

    def __init__(self, target, calls, parallel, spread=0):
        with Daemon(LIMITS % parallel) as d:
            d.start()
            d.wait_final(d.add(http="POST", url=target.url, body=BODY)["id"])  # starts jobsched-net
            begin = int(time.time()) + 3 + calls // 3000
            for i in range(0, calls, 5000):
                specs = [dict(http="POST", url=target.url, body=BODY, schedule=[text_of(begin + spread * k // calls)], overlap="allow")
                         for k in range(i, min(calls, i + 5000))]
                d.api().post("/v1/jobs/bulk", {"jobs": specs})
            assert time.time() < begin - 0.5, "adding the jobs took too long"
            time.sleep(begin - 0.3 - time.time())
            pids = (d.process.pid, d.net(), target.process.pid)
            before = [cpu(p) for p in pids]
            target.figures()
            time.sleep(max(0, begin + spread - 1 - time.time()))

            def ended():
                runs = d.api().get("/v1/status")["runs"]
                return runs["succeeded"] + runs.get("failed", 0) > calls
            wait_until("all calls have ended", 600, ended, 0.05)
            self.daemon, self.net, self.target = [cpu(p) - b for p, b in zip(pids, before)]
            self.seen = target.figures()
            d.stop()
            # due, start and end of each run; the end is the time of the answer, which is stored soon after
            rows = d.database().execute("SELECT due_at, started_at, ended_at, state FROM runs WHERE due_at >= ?", (begin * 1000000,)).fetchall()
            assert len(rows) == calls and len({row[3] for row in rows}) == 1, "some calls have failed"
            self.late = sorted((row[1] - row[0]) / 1e6 for row in rows)
            self.took = max(row[2] for row in rows) / 1e6 - begin


def median(values):
    return sorted(values)[len(values) // 2]


COLUMNS = (("curl/min", "%9.0f"), ("ours/min", "%9.0f"), ("ratio", "%6.2f"), ("curl", "%6.1f"), ("net", "%6.1f"), ("daemon", "%6.1f"),
           ("target", "%6.1f"), ("busy", "%5.0f"), ("ours", "%5.0f"), ("peak", "%5.0f"), ("ours", "%5.0f"), ("conns", "%6.0f"), ("ours", "%5.0f"))


def compare(name, delay_ms, calls, parallel, certificate=()):
    rows = []
    with Target(delay_ms, certificate) as target:
        alone(target, 1000, parallel)
        for _ in range(ROUNDS):
            target.figures()
            before = target.cpu()
            curl, curl_cpu = alone(target, calls, parallel)
            busy, seen = (target.cpu() - before) / curl, target.figures()
            o = Ours(target, calls, parallel)
            rows.append((60 * calls / curl, 60 * calls / o.took, curl / o.took) +
                        tuple(1e6 * x / calls for x in (curl_cpu, o.net, o.daemon, o.target)) +
                        (100 * busy, 100 * o.target / o.took, seen[1], o.seen[1], seen[2], o.seen[2]))
    row = [median(column) for column in zip(*rows)]
    print("%-10s %5d " % (name, parallel) + " ".join(form % value for (_, form), value in zip(COLUMNS, row)), flush=True)
    # curl is one thread. A run of ours has a slot from its claim to the commit of its end; its CPU time is in three threads.
    most, slot = os.cpu_count() * 1e6 / sum(row[4:7]), 60000 * parallel / row[1]
    print("%16s bounds: curl by %s; ours by the commits, a slot is taken for %.1f ms per call, and by CPU at %.0f calls/min on %d processors" % (
        "", "%.0f/min, which %d at a time and %d ms allow" % (60000 * parallel / delay_ms, parallel, delay_ms) if delay_ms else "its one thread",
        slot, 60 * most, os.cpu_count()), flush=True)


def minute(spread=60):
    with Target(20) as target:
        o = Ours(target, MINUTE_RUNS, 256, spread)
    late = [1e3 * o.late[int(len(o.late) * part)] for part in (0.5, 0.99)] + [1e3 * o.late[-1]]
    print("minute: %d runs due within %d s, a target that answers after 20 ms: the last end %.2f s after the first due time;\n"
          "        lateness p50 %.0f ms, p99 %.0f ms, most %.0f ms; CPU s: daemon %.1f, jobsched-net %.1f, target %.1f; at most %d at a time"
          % (MINUTE_RUNS, spread, o.took, *late, o.daemon, o.net, o.target, o.seen[1]), flush=True)


def https(calls, parallel):
    """The certificates of the system are those of the target, in a mount namespace: neither side gets a CA of its own."""
    if os.geteuid() != 0:
        print("https: needs root", flush=True)
        return
    with tempfile.TemporaryDirectory() as to:
        pair = [os.path.join(to, "target.pem"), os.path.join(to, "target.key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-out", pair[0], "-keyout", pair[1]],
                       check=True, capture_output=True)
        subprocess.run(["unshare", "--mount", "sh", "-ec", 'mount --bind "$1" /etc/ssl/certs/ca-certificates.crt; shift; exec "$@"', "sh", pair[0],
                        sys.executable, os.path.abspath(__file__), str(calls), "tls", *pair, str(parallel)], check=True)


def heading():
    print("%-10s %5s " % ("", "") + " " * 26 + "  CPU us per call:         target %  at a time  connections")
    print("%-10s %5s " % ("part", "most") + " ".join("%*s" % (int(form[1:].split(".")[0].rstrip("f")), name) for name, form in COLUMNS), flush=True)


def main(calls="10000", *parts):
    calls = int(calls)
    if parts[:1] == ("tls",):
        compare("https", 0, calls, int(parts[3]), parts[1:3])
        return
    heading()
    for part in parts or ("saturated", "5ms", "20ms", "50ms", "https", "minute"):
        if part == "minute":
            minute()
        elif part == "https":
            https(calls, PARALLEL[-1])
        else:
            for parallel in PARALLEL:
                compare(part, 0 if part == "saturated" else int(part[:-2]), calls, parallel)


main(*sys.argv[1:])
