#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the daemon with many open pages: CPU and memory, idle and with runs. By hand:

    cost.py HOST:PORT TOKEN PID [PAGES]

The pages are tabs of 50 browsers: each browser has a session, each page has an event stream, and requests as the overview makes them: after an event, at most every two
seconds. A request that a limit refuses is repeated after the time in Retry-After, as the page does.
"""
import json
import os
import random
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

HOST, PORT = sys.argv[1].split(":")
TOKEN, PID, PAGES = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 200
OVERVIEW = ["status", "nodes", "dead?limit=6", "runs?state=failed,timed_out,lost&limit=100", "jobs?state=suspended&limit=20",
            "runs?state=queued&planned=false&limit=30", "runs?state=claimed,running&limit=30"]
BROWSERS = 50
counts = {"requests": 0, "events": 0, "errors": 0, "repeated": 0}
stop = threading.Event()


def call(path, body=None, cookie=None):
    own = {"Cookie": cookie} if cookie else {"Authorization": "Bearer " + TOKEN}
    r = urllib.request.Request("http://%s:%s/v1/%s" % (HOST, PORT, path), data=None if body is None else json.dumps(body).encode(),
                               headers={"Content-Type": "application/json", "Origin": "http://%s:%s" % (HOST, PORT), **own})
    while True:
        try:
            with urllib.request.urlopen(r, timeout=60) as answer:
                return json.load(answer), answer.headers
        except urllib.error.HTTPError as e:
            if e.code not in (429, 503):
                raise
            counts["repeated"] += 1
            time.sleep(int(e.headers.get("Retry-After", 1)) * (1 + random.random()))


def page(cookie):
    s = socket.create_connection((HOST, int(PORT)))
    s.sendall(("GET /v1/stream HTTP/1.1\r\nHost: %s:%s\r\nCookie: %s\r\nAccept: text/event-stream\r\n\r\n" % (HOST, PORT, cookie)).encode())
    s.settimeout(1)
    last = time.monotonic()
    pause = 2.0
    changed = False
    while not stop.is_set():
        try:
            data = s.recv(65536)
            if not data:
                counts["errors"] += 1
                return
            n = data.count(b"\nevent: ") + data.startswith(b"event: ")
            counts["events"] += n
            changed |= n > 0
        except TimeoutError:
            pass
        if changed and time.monotonic() - last > pause:
            begun = time.monotonic()
            for path in OVERVIEW:
                try:
                    call(path, cookie=cookie)
                    counts["requests"] += 1
                except OSError:
                    counts["errors"] += 1
            last = time.monotonic()
            pause = min(30.0, max(2.0, 15 * (last - begun)))
            changed = False
    s.close()


def usage():
    with open("/proc/%d/stat" % PID) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    with open("/proc/%d/statm" % PID) as f:
        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), resident


def measure(name, seconds):
    before, start = usage(), dict(counts)
    time.sleep(seconds)
    after = usage()
    print("%-22s CPU %5.1f %%  memory %6.1f MiB  %6.1f requests/s  %7.1f events/s  %d repeated, %d errors" % (
        name, (after[0] - before[0]) / seconds * 100, after[1] / 2**20, (counts["requests"] - start["requests"]) / seconds,
        (counts["events"] - start["events"]) / seconds, counts["repeated"] - start["repeated"], counts["errors"] - start["errors"]), flush=True)


measure("no page, idle", 5)
cookies = [call("session", {"token": TOKEN})[1]["Set-Cookie"].split(";")[0] for _ in range(BROWSERS)]
threads = [threading.Thread(target=page, args=(cookies[i % BROWSERS],), daemon=True) for i in range(PAGES)]
for t in threads:
    t.start()
time.sleep(5)
measure("%d pages, idle" % PAGES, 15)
job = call("jobs", {"schedule": ["PT1S"], "script": "true"})[0]["id"]
measure("%d pages, one run/s" % PAGES, 30)
call("jobs/%d/cancel" % job, {})
stop.set()
