# SPDX-License-Identifier: Apache-2.0
# Random requests of several users to every route: complete, damaged, cut short and repeated. SEED repeats them.
import contextlib
import json
import os
import random
import re
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contract import CONTRACT
from harness import case, main
from system import System

REQUESTS = 3000
KEY = os.path.join("/home", "alice", "key")
NOT_ASKED = {"/v1/db/prune", "/v1/freeze", "/v1/db/backup"}  # they end the history, the starts, or write as much as the store has
SPECS = [
    {"command": ["sleep", "0.2"]},
    {"command": ["sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; exit 1"], "retries": 2, "notify": ["exec:true"]},
    {"command": ["true"], "name": "a", "if_exists": "replace"},
    {"command": ["true"], "schedule": ["* * * * *"], "overlap": "queue:3"},
    {"command": ["false"], "schedule": ["every 1s"], "name": "t", "if_exists": "keep"},
    {"script": "echo hi", "stdin": "x" * 1000, "secrets": {"A": "file:" + KEY}},
    {"command": ["cat"], "artifact": "file:/etc/hostname", "sha256": "0" * 64},
    {"template": "t1", "params": {"x": "1"}},
    {"command": ["sleep", "3"], "timeout": "1s", "key": "k1"},
    {"command": ["true"], "queue": "default", "env": {"A": "b"}, "tags": {"a": "b"}},
]
VALUES = ["", "0", "1", "2", "3", "5", "-5", "1000", "9223372036854775807", "x", "true", "a", "a=b", "job", "active", "running,queued",
          "*a*", "%2a%3f", "%00", "%zz", "bob", "alice", "root", "1970-01-01T00:00:00Z", "2030-01-01T00:00:00Z"]


def path_of(path, rng):
    names = {"job": [str(rng.randint(1, 300)), "a", "t", "x%2fy", "999999"], "run": [str(rng.randint(1, 600))], "template": ["t1"]}
    return re.sub(r"\{([a-z]+)\}", lambda m: rng.choice(names.get(m[1], ["default", "alice", "vm", "x"])), path)


def body_of(rng):
    one = rng.choice(SPECS)
    return rng.choice([
        b"", b"{}", b"[]", b"null", json.dumps(one).encode(), json.dumps(one).encode(), json.dumps({"jobs": [one] * 5}).encode(),
        b'{"params":{"x":"2"}}', b'{"revision":1,"command":["echo","x"]}', b'{"reason":"x","until":"2030-01-01T00:00:00Z"}',
        b'{"definition":{"command":["echo","{{x}}"]},"params":{"x":null}}', b'{"running":true}', rng.randbytes(30)])


def request_of(operations, rng):
    """A request, damaged now and then."""
    method, path, names = rng.choice(operations)
    asked = rng.sample(names, min(len(names), rng.choice([0, 1, 1, 2, 3, 4])))
    query = "&".join("%s=%s" % (name, rng.choice(VALUES)) for name in asked)
    body = body_of(rng) if method != "GET" else b""
    if path == "/v1/jobs" and method == "POST":
        body = json.dumps(rng.choice(SPECS)).encode()
    text = "%s %s%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
        method, path_of(path, rng), "?" + query if query else "", len(body))
    data = bytearray(text.encode() + body)
    if rng.random() < 0.1:
        data *= rng.randint(2, 4)
    if rng.random() < 0.05:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[:rng.randrange(len(data)) if rng.random() < 0.15 else len(data)])


def ask(path, uid, data, rng):
    """Sends the request as this user, reads some of the response or nothing, and closes. Returns the status if it was read."""
    with socket.socket(socket.AF_UNIX) as c, contextlib.suppress(OSError):
        c.settimeout(rng.choice([0.001, 0.01, 0.05, 0.2]))
        os.seteuid(uid)
        try:
            c.connect(path)
        finally:
            os.seteuid(0)
        c.sendall(data)
        if rng.random() < 0.1:
            c.shutdown(socket.SHUT_WR)
        status = re.match(rb"HTTP/1.1 (\d+)", c.recv(rng.choice([100, 65536]))) if rng.random() < 0.8 else None
        return int(status[1]) if status else None


@case
def random_requests_end_no_program_and_cause_no_internal_error():
    operations = [(method.upper(), path, [p["name"] for p in operation.get("parameters", []) if p.get("in") == "query"])
                  for path, methods in CONTRACT.file["paths"].items() if path not in NOT_ASKED
                  for method, operation in methods.items() if method in ("get", "post", "put", "patch", "delete")]
    often = [o for o in operations if o[1].startswith("/v1/runs/{run}")] + 8 * [("POST", "/v1/jobs", [])]
    rng, answers = random.Random(random.random()), {}
    with System(engine_conf="submissions-per-second = 1000\nsubmissions-burst = 1000\n") as s:
        s.start()
        with open(KEY, "w") as f:
            f.write("abcdefghijkl")
        os.chown(KEY, s.uid("alice"), s.uid("alice"))
        for i in range(REQUESTS):
            user = rng.choice(["alice", "alice", "bob", "root"])
            data = request_of(operations + 2 * often, rng)
            status = ask(s.socket, s.uid(user), data, rng)
            assert s.engine.poll() is None and s.spawner.poll() is None and s.net.poll() is None, (i, user, data, s.said()[-3000:])
            assert status != 500, (i, user, data)
            answers[status] = answers.get(status, 0) + 1
            if i % (REQUESTS // 4) == REQUESTS // 4 - 1:
                s.spawner.send_signal(signal.SIGHUP)
        assert answers.get(201, 0) > REQUESTS // 100 and answers.get(400, 0) > REQUESTS // 100, answers
        assert "intact" in s.jobctl("root", "db", "check").stdout
        assert s.add("carol", command=["true"])["id"]
        return str(answers)


main()
