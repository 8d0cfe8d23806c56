# SPDX-License-Identifier: Apache-2.0
# A user who exhausts a shared resource does not block other users or root.
# The tests check order and sums, not durations.
import contextlib
import json
import os
import select
import socket
import sys
from datetime import datetime, timezone

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, main, thread_stopped, wait_until
from system import System


@case
def notices_of_one_owner_leave_slots_for_other_owners():
    with System(engine_conf="notice-slots = 8\n") as s:
        s.start()
        gate = os.path.join(s.home("alice"), "gate")
        os.mkfifo(gate)
        os.chown(gate, s.uid("alice"), s.uid("alice"))
        alice, told = s.api("alice"), os.path.join(s.home("bob"), "told")
        job = s.add("alice", command=["true"], schedule=["manual"], notify=["exec:cat %s; : %d" % (gate, i) for i in range(8)])["id"]
        for _ in range(3):
            alice.post("/v1/jobs/%d/notify-test" % job)

        def under_way():
            return sum(n["tries"] == 1 and n["state"] == "waiting" for n in alice.pages("/v1/notices", "notices"))
        wait_until("alice's share of the slots is in use", 60, lambda: under_way() == 4)
        s.add("bob", command=["false"], notify=["exec:touch " + told])
        wait_until("bob's notice is sent", 60, lambda: os.path.exists(told))
        states = [n["state"] for n in alice.pages("/v1/notices", "notices")]
        assert states == ["waiting"] * 24, states
        assert under_way() == 4, "the number of alice's slots has changed"
        open(gate, "w").close()  # ends the blocked commands; the next notices get their slots
        wait_until("the next notices are being sent", 60, lambda: sum(n["state"] == "sent" for n in alice.pages(
            "/v1/notices", "notices")) >= 4 and under_way() == 4)


def connect(s, user):
    """Opens a socket connection as this user."""
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(120)
    os.seteuid(user if isinstance(user, int) else s.uid(user))
    try:
        c.connect(s.socket)
    finally:
        os.seteuid(0)
    return c


def readable(socks):
    """The number of sockets with data or end of file to read."""
    return len(select.select(socks, [], [], 0)[0])


def read_all(c):
    """Reads a response until the connection is closed. Returns status and JSON."""
    data = b""
    while True:
        part = c.recv(1 << 20)
        if not part:
            break
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    if b"chunked" in head:
        parts = []
        while body:
            size, _, body = body.partition(b"\r\n")
            parts.append(body[:int(size, 16)])
            body = body[int(size, 16) + 2:]
        body = b"".join(parts)
    return int(head.split()[1]), json.loads(body)


@case
def unread_lists_delay_only_their_own_user():
    with System(engine_conf="answers-per-uid = 1M\n") as s:
        s.start()
        later = "2031-01-01T00:00:00Z"
        s.api("alice").post("/v1/jobs/bulk", {"jobs": [{"command": ["cat"], "stdin": "x" * 100000, "schedule": [later]}] * 20})
        s.add("bob", name="b", command=["true"], schedule=[later])
        lists = [connect(s, "alice") for _ in range(40)]
        for c in lists:
            c.sendall(b"GET /v1/jobs?limit=1000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert [j["name"] for j in s.api("bob").get("/v1/jobs")["jobs"]] == ["b"]
        assert len(s.api("root").get("/v1/jobs?limit=5")["jobs"]) == 5
        s.wait_final("bob", s.add("bob", command=["true"])["id"], 60)
        # each response uses 256 KiB of alice's 1 MiB, so 4 or 5 responses have started; the others wait
        assert readable(lists) <= 5, readable(lists)
        assert s.api("bob").get("/v1/jobs")["jobs"], "bob's list is empty while alice's lists wait"
        for c in lists[8:]:
            c.close()
        for c in lists[:8]:  # each list is read completely before the next: no response depends on one that is read later
            status, answer = read_all(c)
            assert (status, len(answer["jobs"])) == (200, 20), (status, len(answer["jobs"]))
            c.close()


BULK = 4 << 20


def send_but_the_last_byte(s, user):
    c = connect(s, user)
    c.sendall(b"POST /v1/jobs/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
              b"Content-Length: %d\r\n\r\n" % BULK + b" " * (BULK - 1))
    return c


@case
def request_bodies_of_one_user_are_limited_in_total():
    with System(engine_conf="bulk-body-limit = 4M\nbodies-per-uid = 8M\nbodies-total = 24M\n") as s:
        s.start()
        socks = [send_but_the_last_byte(s, "alice") for _ in range(6)]  # 24 MiB, as much as bodies-total
        s.api("bob").post("/v1/jobs/bulk", {"jobs": [{"command": ["cat"], "stdin": "x" * 900000, "schedule": ["manual"]}] * 4})
        s.wait_final("bob", s.add("bob", command=["true"])["id"], 60)
        answers = []
        for c in socks:
            c.sendall(b" ")
            status, answer = read_all(c)
            answers.append(status)
            assert status == 400 or (answer["error"]["code"], "bodies-per-uid" in answer["error"]["message"]) == ("limit", True), answer
        assert answers.count(400) <= 2 and answers.count(429) >= 4, answers  # two bodies were accepted; their content is only spaces
        s.api("alice").post("/v1/jobs/bulk", {"jobs": [{"command": ["true"], "schedule": ["manual"]}] * 3})


def first_status(c):
    """Sends a request and returns the status of the response or of the refusal."""
    try:
        c.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    except OSError:
        pass  # already refused and closed
    status = int(c.recv(1000).split()[1])
    c.close()
    return status


@case
def connections_of_two_users_leave_some_for_others_and_root():
    with System(engine_conf="connections = 64\nconnections-per-uid = 60\nconnections-reserved = 8\n") as s:
        s.start()
        held, refused = [], {}
        for user in ("alice", "bob"):
            for _ in range(64):
                c = connect(s, user)
                try:
                    c.sendall(b"GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\n\r\n")
                except OSError:
                    pass  # already refused and closed
                held.append((user, c))
        for user, c in held:
            status = int(c.recv(1000).split()[1])
            refused[user] = refused.get(user, 0) + (status == 429)
        # users share 56 connections: alice gets half of them, bob half of the rest
        assert refused == {"alice": 64 - 28, "bob": 64 - 14}, refused
        got = s.jobctl("alice", "list", check=False)
        assert got.returncode != 0 and "too many connections of your user: 28 are open" in got.stderr, got.stderr
        more = [connect(s, 5000 + i // 14) for i in range(10 * 14)]  # ten further accounts use the rest
        wait_until("no connection is left for users", 60, lambda: first_status(connect(s, 6000)) == 503)
        for user in ("carol", "root"):  # carol is an administrator
            got = s.jobctl(user, "list", check=False)
            assert got.returncode == 0, (user, got.stderr)
        for c in more:
            c.close()


def chunks(data):
    """The complete chunks of a response, without the empty last one."""
    _, _, body = data.partition(b"\r\n\r\n")
    found = []
    while b"\r\n" in body:
        size, _, rest = body.partition(b"\r\n")
        size = int(size, 16)
        if size == 0 or len(rest) < size + 2:
            break
        found.append(rest[:size])
        body = rest[size + 2:]
    return found


def receive(c):
    """What has arrived."""
    data = b""
    while readable([c]):
        part = c.recv(1 << 20)
        assert part, "the daemon has closed the connection"
        data += part
    return data


FOLLOWERS, EVENTS = 200, 40


@case
def many_followers_of_events_read_each_burst_once():
    """While the reader thread stands still, 40 events are stored. Each follower gets them with few reads, not with one for each."""
    with System() as s:
        s.start()
        followers = [connect(s, "alice") for _ in range(FOLLOWERS)]
        for c in followers:
            c.sendall(b"GET /v1/events?follow=true&what=job.add HTTP/1.1\r\nHost: x\r\n\r\n")
        s.add("alice", name="first", command=["true"], schedule=["manual"])
        data = [b""] * FOLLOWERS

        def all_have(text, times=1):
            for i, c in enumerate(followers):
                data[i] += receive(c)
            return all(d.count(text) >= times for d in data)
        wait_until("all followers have the first event", 60, lambda: all_have(b'"first"'))
        before = [len(chunks(d)) for d in data]
        bob = connect(s, "bob")
        with thread_stopped(s.engine.pid, "reader"):
            for i in range(EVENTS):
                s.add("alice", name="later%d" % i, command=["true"], schedule=["manual"])
            bob.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert not readable([*followers, bob])
        assert read_all(bob) == (200, {"jobs": [], "next_cursor": None})
        wait_until("all followers have all events", 60, lambda: all_have(b'"later', EVENTS))
        reads = [len(chunks(d)) - n for d, n in zip(data, before)]
        assert max(reads) <= 3, "a follower needed %d reads for %d events" % (max(reads), EVENTS)
        return "at most %d reads" % max(reads)


def descriptors(s):
    """What the descriptors of the daemon refer to. One that is closed meanwhile is left out."""
    found = []
    for n in os.listdir("/proc/%d/fd" % s.engine.pid):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink("/proc/%d/fd/%s" % (s.engine.pid, n)))
    return found


@case
def a_follower_of_a_log_needs_two_descriptors():
    with System() as s:
        s.start()
        gate = os.path.join(s.home("alice"), "log-gate")
        os.mkfifo(gate)
        os.chown(gate, s.uid("alice"), s.uid("alice"))
        job = s.add("alice", command=["sh", "-c", "echo first; read x <" + gate + "; echo last"])["id"]
        run = wait_until("the run has started", 60, lambda: [r for r in s.runs("alice", job) if r["state"] == "running"])[0]["id"]
        wait_until("it has written", 60, lambda: s.output("alice", run) == "first\n")
        s.api("alice").get("/v1/status")
        before = descriptors(s)
        followers = [connect(s, "alice") for _ in range(FOLLOWERS)]
        for c in followers:
            c.sendall(b"GET /v1/runs/%d/output?follow=true HTTP/1.1\r\nHost: x\r\n\r\n" % run)
        data = [b""] * FOLLOWERS

        def all_have(text):
            for i, c in enumerate(followers):
                data[i] += receive(c) if text not in data[i] else b""
            return all(text in d for d in data)
        wait_until("all followers have the first line", 60, lambda: all_have(b"first\n"))
        during = descriptors(s)
        assert len(during) <= len(before) + 2 * FOLLOWERS + 8, (len(before), len(during))
        assert sum("inotify" in d for d in during) <= sum("inotify" in d for d in before) + 1, "the followers share one watch"
        s.run_as("alice", ["sh", "-c", "echo >" + gate])
        wait_until("all followers have the last line", 60, lambda: all_have(b"last\n"))
        for c in followers:
            c.close()
        # the threads of the store may have opened theirs since; each follower that stays open has two
        wait_until("the descriptors are closed", 60, lambda: len(descriptors(s)) < len(before) + FOLLOWERS / 2)
        return "%d descriptors for %d followers" % (len(during) - len(before), FOLLOWERS)


@case
def history_of_an_owner_is_kept_when_another_owner_fills_the_store():
    with System(engine_conf="store-budget = 2M\nowner-store-limit = 4M\n") as s:
        s.start()
        job = s.add("bob", command=["true"], schedule=["manual"], overlap="allow")["id"]
        for _ in range(10):
            s.api("bob").post("/v1/jobs/%d/run" % job, {})
        wait_until("bob's runs have ended", 60, lambda: sum(r["state"] == "succeeded" for r in s.runs("bob", job)) == 10)
        later = {"command": ["cat"], "stdin": "x" * 400000, "schedule": ["2031-01-01T00:00:00Z"]}
        ids = [s.add("alice", **later)["id"] for _ in range(8)]
        s.jobctl("root", "db", "prune", "--yes")
        assert len(s.runs("bob", job)) == 10, len(s.runs("bob", job))
        # alice uses 3 of her 4 MiB; the third job exceeds the limit, and removed jobs free space at the next pass
        answers = [s.api("alice").call("POST", "/v1/jobs", later) for _ in range(3)]
        assert [a[0] for a in answers] == [201, 201, 429], answers
        assert "may have 4 MiB ('owner-store-limit'" in answers[2][1]["error"]["message"], answers[2]
        for job_id in ids[:4]:
            assert s.api("alice").call("DELETE", "/v1/jobs/%d" % job_id)[0] == 200
        s.jobctl("root", "db", "prune", "--yes")
        s.add("alice", **later)
        assert len(s.runs("bob", job)) == 10
        assert "intact" in s.jobctl("root", "db", "check").stdout


@case
def a_backlog_of_frequent_slots_is_overtaken_by_another_owner():
    """alice's 400 jobs are due every second, more than the node can run. bob's run waits for few of them, not for the backlog."""
    with System(engine_conf="max-running = 4\n") as s:
        s.start()
        alice = s.api("alice")
        often = {"command": ["sleep", "0.05"], "schedule": ["every 1s"]}
        assert alice.call("POST", "/v1/jobs/bulk", {"jobs": [often] * 400})[0] == 201

        def late():
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            return sum(r["due_at"] < now for r in alice.pages("/v1/runs?state=queued", "runs"))
        for _ in range(3):
            wait_until("alice has a backlog", 60, lambda: late() >= 300)
            job = s.add("bob", command=["true"])["id"]
            run = s.wait_final("bob", job, 60)
            between = [r for r in alice.pages("/v1/runs", "runs")
                       if r["started_at"] and run["created_at"] < r["started_at"] < run["started_at"]]
            assert run["state"] == "succeeded" and len(between) < 100, (len(between), run)


if __name__ == "__main__":
    main()
