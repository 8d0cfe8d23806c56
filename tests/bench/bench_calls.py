# SPDX-License-Identifier: Apache-2.0
# Compares HTTP calls of jobs with the same requests by libcurl alone: requests per minute, and CPU time per request.
# Prints NAME VALUE lines.
#
# usage: tests/bench/bench_calls.py [CALLS [ROUNDS]]      with top_builddir set
import asyncio
import multiprocessing
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from harness import BUILD, Daemon, wait_until

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
PARALLEL = 64


class Target(asyncio.Protocol):
    """Answers each request with a body of less than 64 KiB, on connections that stay open."""

    def __init__(self):
        self.data = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data
        while b"\r\n\r\n" in self.data:
            head, rest = self.data.split(b"\r\n\r\n", 1)
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
            if len(rest) < length:
                return
            self.data = rest[length:]
            self.transport.write(ANSWER)


def serve(pipe):
    async def run():
        server = await asyncio.get_running_loop().create_server(Target, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    asyncio.run(run())


def cpu(pid):
    """CPU seconds of a process."""
    with open("/proc/%d/stat" % pid) as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def ours(url, calls):
    config = "http-allow = 127.0.0.0/8\nmax-running = %d\nsubmissions-per-second = 1000000\nsubmissions-burst = 1000000\nbulk-jobs = 100000\n" \
             "bulk-body-limit = 1G\njobs-per-uid = 1000000\n" % PARALLEL
    with Daemon(config) as d:
        d.start()
        d.wait_final(d.add(http="POST", url=url)["id"])  # starts jobsched-net
        start = time.time() + 2 + calls / 5000
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(start) + 1))
        for i in range(0, calls, 5000):
            spec = dict(http="POST", url=url, body='{"a": 1}', schedule=[at], overlap="allow")
            d.api().post("/v1/jobs/bulk", {"jobs": [spec] * min(5000, calls - i)})
        pids = (d.process.pid, d.net())
        begun, before = max(time.time(), int(start) + 1), [cpu(p) for p in pids]
        time.sleep(max(0, begun - time.time()))

        def ended():
            return d.api().get("/v1/status")["runs"]["succeeded"] >= calls + 1
        wait_until("all calls have ended", 600, ended, 0.2)
        return time.time() - begun, [cpu(p) - b for p, b in zip(pids, before)]


def main(calls="10000", rounds="3"):
    calls = int(calls)
    here, there = multiprocessing.Pipe()
    target = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    target.start()
    url = "http://127.0.0.1:%d/" % here.recv()
    for _ in range(int(rounds)):
        bare, bare_cpu = map(float, subprocess.run([os.path.join(BUILD, "tests/bench/bench_curl"), url, str(calls), str(PARALLEL)],
                                                   check=True, capture_output=True, text=True).stdout.split())
        took, (daemon, net) = ours(url, calls)
        print("curl_per_minute %.0f\ncalls_per_minute %.0f\nratio %.2f" % (60 * calls / bare, 60 * calls / took, bare / took))
        print("curl_cpu_us %.0f\nnet_cpu_us %.0f\ndaemon_cpu_us %.0f" % tuple(1e6 * x / calls for x in (bare_cpu, net, daemon)), flush=True)
    target.terminate()


main(*sys.argv[1:])
