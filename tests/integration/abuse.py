# SPDX-License-Identifier: Apache-2.0
# Tests the API against hostile and faulty clients.
import array
import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Api, Daemon, case, main, sanitized, wait_until

TRUE = ["true"]
LATER = "2199-01-01T00:00:00Z"
MIB = 1024 * 1024


def connect(d, timeout=20):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(timeout)
    s.connect(d.socket)
    return s


def request(method="GET", path="/v1/status", body=b"", headers=()):
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: localhost", *headers]
    if body:
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def submission(**more):
    return json.dumps(dict({"command": TRUE, "schedule": LATER}, **more)).encode()


def to_end(s):
    """All data until the daemon closes the connection. Fails if the daemon keeps it open."""
    got = b""
    try:
        while True:
            piece = s.recv(65536)
            if not piece:
                return got
            got += piece
    except ConnectionResetError:
        return got
    except socket.timeout:
        raise AssertionError("the connection is still open after %r" % got[:200])


def ask(d, data, timeout=20):
    """Sends raw bytes on a new connection; returns all data until it is closed."""
    with connect(d, timeout) as s:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(data)
        return to_end(s)


def first_answer(s):
    """Status of the first response; the connection stays open."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = s.recv(1)
        if not piece:
            return None
        head += piece
    length = int([l for l in head.lower().split(b"\r\n") if l.startswith(b"content-length:")][0].split(b":")[1])
    while length:
        length -= len(s.recv(length))
    return int(head.split(b" ")[1])


def statuses(answer):
    return [int(piece[:3]) for piece in answer.split(b"HTTP/1.1 ")[1:]]


def descriptors(d):
    return len(os.listdir("/proc/%d/fd" % d.process.pid))


def rss(d):
    with open("/proc/%d/statm" % d.process.pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def jobs(d):
    api = Api(d.socket)
    try:
        return len(api.pages("/v1/jobs", "jobs"))
    finally:
        api.close()


def answers_in_time(d):
    began = time.monotonic()
    with connect(d) as s:
        s.sendall(request())
        assert first_answer(s) == 200
    return time.monotonic() - began < 2


def serves_again(d):
    """The daemon has closed the connections of the clients that have left, and answers a new one."""
    with contextlib.suppress(OSError), connect(d) as s:
        s.sendall(request())
        return first_answer(s) == 200


def still_well(d):
    """The daemon answers within two seconds; a short stall of the disk is tolerated."""
    return wait_until("it answers within two seconds", 20, lambda: answers_in_time(d))


@contextlib.contextmanager
def no_descriptor_is_left(d):
    d.api().close()
    wait_until("the daemon answers", 5, lambda: still_well(d) and not time.sleep(0.1))
    before = descriptors(d)
    yield
    # one more for the output watch, which the first follower creates
    wait_until("descriptors are closed", 15, lambda: descriptors(d) <= before + 1)


@case
def a_thousand_clients_submit_at_once_and_all_are_served():
    with Daemon() as d:
        d.start()
        clients = [connect(d) for _ in range(1000)]
        began = time.monotonic()
        for i, s in enumerate(clients):
            s.sendall(request("POST", "/v1/jobs", submission(name="j%d" % i)))
        took, seen = [], []
        poll = select.poll()
        by_fd = {s.fileno(): s for s in clients}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        while by_fd:
            events = poll.poll(20000)
            assert events, "%d of 1000 were never answered" % len(by_fd)
            for fd, _ in events:
                seen.append(first_answer(by_fd.pop(fd)))
                took.append(time.monotonic() - began)
                poll.unregister(fd)
        for s in clients:
            s.close()
        assert seen == [201] * 1000, {s: seen.count(s) for s in seen}
        assert jobs(d) == 1000
        p99 = sorted(took)[989]
        assert p99 < 10, p99
        return "p99 %.0f ms" % (p99 * 1000)


@case
def slow_idle_and_half_closed_clients_are_disconnected_without_effect_on_others():
    with Daemon("head-timeout = 1\nbody-timeout = 2\n") as d:
        d.start()
        with no_descriptor_is_left(d):
            head, body = request(), request("POST", "/v1/jobs", submission())[:-5]
            slow = [(connect(d), head) for _ in range(100)] + [(connect(d), body) for _ in range(50)]
            idle = [connect(d) for _ in range(50)]
            half = [connect(d) for _ in range(20)]
            for s in half:
                s.sendall(head[:20])
                s.shutdown(socket.SHUT_WR)
            waits, began, sent = [], time.monotonic(), 0
            while time.monotonic() - began < 3.5:
                for s, text in slow:
                    with contextlib.suppress(OSError):
                        s.sendall(text[sent:sent + 1] if text is head else text[sent * 40:sent * 40 + 40])
                sent += 1
                asked = time.monotonic()
                assert Api(d.socket).get("/v1/status")
                waits.append(time.monotonic() - asked)
                time.sleep(0.1)
            for s in [s for s, _ in slow] + idle + half:
                assert to_end(s) == b"", "an incomplete request was answered"
                s.close()
        assert sorted(waits)[len(waits) // 2] < 0.5, waits
        assert jobs(d) == 0
        return "slowest answer to others %.0f ms" % (max(waits) * 1000)


@case
def a_daemon_that_was_stopped_answers_the_requests_sent_meanwhile():
    with Daemon("head-timeout = 1\n") as d:
        d.start()
        clients = [connect(d) for _ in range(50)]
        assert Api(d.socket).get("/v1/status")  # the daemon has accepted the connections before this one
        os.kill(d.process.pid, signal.SIGSTOP)
        try:
            for s in clients:
                s.sendall(request(headers=["Connection: close"]))
            time.sleep(1.5)
        finally:
            os.kill(d.process.pid, signal.SIGCONT)
        for s in clients:
            assert to_end(s).startswith(b"HTTP/1.1 200"), "the daemon closed a connection instead of reading the request"
            s.close()


@case
def a_head_over_16_kib_is_refused():
    with Daemon() as d:
        d.start()
        fixed = len(request(headers=["X: "]))
        for size, status in ((16384, 200), (16385, 431), (20000, 431), (100000, 431), (5 * MIB, 431)):
            head = request(headers=["X: " + "x" * (size - fixed)])
            with connect(d) as s:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    s.sendall(head)
                with contextlib.suppress(ConnectionResetError):
                    got = s.recv(100)
                    assert got.startswith(b"HTTP/1.1 %d " % status), (size, got)
        many = request(headers=["H%d: x" % i for i in range(3000)])
        assert statuses(ask(d, many)) == [431]
        assert statuses(ask(d, request(path="/v1/status?" + "x" * 100000)))[0] in (414, 431)
        assert still_well(d)


@case
def a_body_over_its_limit_is_refused_before_it_is_read():
    with Daemon("body-limit = 64K\nbulk-body-limit = 128K\n") as d:
        d.start()
        limit = 65536
        pad = lambda size: submission(stdin="")[:-2] + b"x" * (size - len(submission(stdin=""))) + b'"}'
        for size, status in ((limit - 1, 201), (limit, 201), (limit + 1, 413)):
            assert len(pad(size)) == size
            with connect(d) as s:
                s.sendall(request("POST", "/v1/jobs", pad(size)))
                assert first_answer(s) == status, size
        for length in (limit + 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30):
            head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % length
            got = statuses(ask(d, head))
            assert got and set(got) <= {400, 413}, (length, got)
        for length in (b"-1", b"+5", b"0x10", b"1 2", b"abc", b"", b"5,5"):
            head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + b"\r\n\r\n12345"
            got = statuses(ask(d, head))
            assert got and got[0] in (400, 413), (length, got)
        before = rss(d)
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        data = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 400 + b"0\r\n\r\n"
        assert statuses(ask(d, data)) == [413]
        assert rss(d) - before < 8 * MIB or sanitized(), rss(d) - before
        expect = request("POST", "/v1/jobs", headers=["Content-Length: 99999999", "Expect: 100-continue"])
        assert statuses(ask(d, expect)) == [413], "100 Continue was sent for a body that is refused"
        assert statuses(ask(d, request("GET", "/v1/status", b"{}"))) == [400]
        assert jobs(d) == 2


@case
def malicious_json_is_refused_and_nothing_is_stored():
    with Daemon() as d:
        d.start()
        for body in (b"[" * 100000, b'{"a":' * 100000, b"[" * 65 + b"]" * 65, b'{"command":[' + b'"a",' * 200000 + b'"a"]}',
                     b'{"command":["a"],"timeout":1e999}', b'{"command":["a"],"priority":1' + b"0" * 5000 + b"}",
                     b'{"command":["\xff"]}', b'{"command":["\xc0\x80"]}', b'{"command":["\\ud800"]}',
                     b'{"command":["a\\u0000"]}', b'{"command":["a\x00"]}', b'{"command":["a"],"command":["b"]}',
                     b'{"command":["a"]', b"\xef\xbb\xbf{}", b"\x00" * 1000, b"null", b'"' + b"a" * 100000 + b'"'):
            with connect(d) as s:
                s.sendall(request("POST", "/v1/jobs", body))
                assert first_answer(s) == 400, body[:60]
        assert jobs(d) == 0
        assert still_well(d)


@case
def a_body_with_an_ambiguous_length_is_refused():
    inner = request("POST", "/v1/jobs", submission(name="smuggled"))
    chunked = b"%x\r\n" % len(inner) + inner + b"\r\n0\r\n\r\n"
    post = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n"
    whole = submission()
    cases = {
        "length and encoding": post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
        "encoding and length": post + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked,
        "two lengths": post + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(inner) + inner,
        "two equal lengths": post + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + inner,
        "a list of lengths": post + b"Content-Length: 0, %d\r\n\r\n" % len(inner) + inner,
        "another encoding": post + b"Transfer-Encoding: gzip\r\n\r\n" + inner,
        "two encodings": post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
        "an encoding with a tab": post + b"Transfer-Encoding:\tchunked, gzip\r\n\r\n0\r\n\r\n" + inner,
        "a broken chunk": post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + inner,
        "a chunk beyond 64 bits": post + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + inner,
        "a space before the colon": post + b"Content-Length : 0\r\n\r\n" + inner,
        "no version": b"GET /v1/status\r\n\r\n" + inner,
        "an older version": b"GET /v1/status HTTP/0.9\r\nHost: x\r\n\r\n" + inner,
        "a newer version": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner,
        "no host": b"GET /v1/status HTTP/1.1\r\n\r\n" + inner,
        "a request line of noise": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n" + inner,
    }
    with Daemon("head-timeout = 1\nbody-timeout = 1\n") as d:
        d.start()
        for what, data in cases.items():
            got = statuses(ask(d, data))
            # MHD 0.9.75 sends the beginning of its error page twice
            assert len(set(got)) <= 1 and all(s >= 400 for s in got), (what, got)
            assert jobs(d) == 0, what + ": a request was smuggled in"
        # unusual but not ambiguous: refused, or accepted as one request
        folded = post + b"Connection: close\r\nX-Long: a\r\n b\r\nContent-Length: %d\r\n\r\n" % len(whole) + whole
        bare = folded.replace(b"X-Long: a\r\n b\r\n", b"").replace(b"\r\n", b"\n")
        for data in (folded, bare):
            assert len(statuses(ask(d, data))) <= 1
        assert jobs(d) <= 2
        assert still_well(d)


@case
def pipelined_requests_are_answered_in_order():
    with Daemon("head-timeout = 1\n") as d:
        d.start()
        data = b"".join(request("POST", "/v1/jobs", submission(name="p%d" % i)) + request(path="/v1/jobs/p%d" % i)
                        + request(path="/v1/nowhere") for i in range(20))
        with connect(d) as s:
            s.sendall(data)
            assert [first_answer(s) for _ in range(60)] == [201, 200, 404] * 20
        assert jobs(d) == 20


@case
def a_client_that_disconnects_at_any_byte_stores_all_or_nothing():
    with Daemon() as d:
        d.start()
        with no_descriptor_is_left(d):
            whole = request("POST", "/v1/jobs", submission())
            for n in range(len(whole) + 1):
                with connect(d) as s:
                    s.sendall(whole[:n])
            # each client requests much data and reads nothing or little
            for n in (0, 1, 100, 5000):
                with connect(d) as s:
                    s.sendall(request(path="/v1/status") * 300)
                    if n:
                        s.recv(n)
        assert jobs(d) in (0, 1)
        assert still_well(d)


@case
def clients_that_disconnect_during_a_wait_are_detected():
    with Daemon() as d:
        d.start()
        run = d.add(command=["sleep", "60"])["run"]
        with no_descriptor_is_left(d):
            for path in ("/v1/runs/%d?wait=600", "/v1/runs/%d/output?follow=true"):
                waiting = [connect(d) for _ in range(50)]
                for s in waiting:
                    s.sendall(request(path=path % run))
                time.sleep(0.3)
                for s in waiting:
                    s.close()
        assert still_well(d)


@case
def a_stopping_daemon_answers_waiting_requests():
    with Daemon() as d:
        d.start()
        run = d.add(command=["sleep", "60"])["run"]
        waiting, following = connect(d), connect(d)
        waiting.sendall(request(path="/v1/runs/%d?wait=600" % run))
        following.sendall(request(path="/v1/runs/%d/output?follow=true" % run))
        time.sleep(0.3)
        assert d.stop() == 0
        assert statuses(to_end(waiting)) == [503]
        to_end(following)


@case
def a_long_list_needs_little_memory_at_any_reading_speed():
    with Daemon() as d:
        d.start()
        bulks, size = (1, 4000) if sanitized() else (2, 10000)
        n = bulks * size
        for _ in range(bulks):
            d.api().post("/v1/jobs/bulk", {"jobs": [{"command": ["true", "x" * 500], "schedule": LATER}] * size})
        before = rss(d)
        slow = [connect(d) for _ in range(50)]
        for s in slow:
            s.sendall(request(path="/v1/jobs?limit=1000"))
        began = time.monotonic()
        assert jobs(d) == n
        took = time.monotonic() - began
        grown = rss(d) - before
        assert grown < 48 * MIB or sanitized(), "%d MiB more" % (grown // MIB)
        began = time.monotonic()
        page = d.api().get("/v1/jobs?limit=100")
        first = time.monotonic() - began
        cursor = str(page["jobs"][0]["id"] + n - 100)
        began = time.monotonic()
        assert len(d.api().get("/v1/jobs?limit=100&cursor=" + cursor)["jobs"]) == 99
        last = time.monotonic() - began
        for s in slow:
            s.close()
        return "%d rows in %.1f s, %d MiB more with 50 stalled readers, first page %.1f ms, last %.1f ms" % (
            n, took, grown // MIB, first * 1000, last * 1000)


@case
def descriptors_sent_with_a_request_are_closed():
    with Daemon() as d:
        d.start()
        with no_descriptor_is_left(d):
            fds = array.array("i", [0] * 250)
            for _ in range(10):
                with connect(d) as s:
                    s.sendmsg([request()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                    assert first_answer(s) == 200
                    assert descriptors(d) < 100
                with connect(d) as s:
                    for i in range(20):
                        s.sendmsg([request()[i:i + 1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                    assert descriptors(d) < 100
        assert still_well(d)


@case
def without_free_descriptors_clients_get_an_error_and_runs_continue():
    with Daemon("head-timeout = 2\nconnections = 1000\n") as d:
        d.start(before=["prlimit", "--nofile=80:80"])
        job = d.add(command=TRUE, schedule="now + 2 seconds")
        d.api().close()
        clients, refused = [], 0
        for _ in range(300):
            with contextlib.suppress(OSError):
                s = connect(d, 0.2)
                clients.append(s)
                s.sendall(request())
        for s in clients:
            with contextlib.suppress(OSError):
                refused += s.recv(100).startswith(b"HTTP/1.1 503 ")
        assert refused > 0, "no client got an error"
        for s in clients:
            s.close()
        wait_until("it serves again", 20, lambda: serves_again(d))
        assert still_well(d)
        assert d.wait_final(job["id"])["state"] == "succeeded"


@case
def connections_over_the_limit_get_an_error_response():
    with Daemon("connections = 20\n") as d:
        d.start()
        d.api().close()
        time.sleep(0.2)
        held = [connect(d) for _ in range(20)]
        time.sleep(0.3)
        assert statuses(ask(d, request())) == [503]
        for s in held:
            s.close()
        assert wait_until("connections are free again", 10, lambda: statuses(ask(d, request(headers=["Connection: close"]))) == [200])


main()
