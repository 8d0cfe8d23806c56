# SPDX-License-Identifier: Apache-2.0
# The API over TCP against hostile requests: paths, tokens, roles, other sites, sizes, slowness.
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contract import CONTRACT
from harness import JOBCTL, Daemon, case, main, wait_until
from tcp_client import Client, port_of

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# without a token; the page and its files are public, too
ANONYMOUS = {("GET", "/healthz"), ("GET", "/readyz"), ("POST", "/v1/session"), ("GET", "/"), ("GET", "/ui/{file}"),
             ("POST", "/v1/callbacks/{callback}")}
GOLDEN = {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
          "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "private, no-cache",
          "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Content-Type": "application/json"}


COMMON = {"Date", "Connection", "Content-Length", "Transfer-Encoding", "ETag", "Vary"}


def routes():
    """All routes: (method, path with braces)."""
    return [(m.upper(), p) for p, operations in CONTRACT.file["paths"].items() for m in operations if m.upper() in METHODS]


def concrete(path):
    return re.sub(r"\{[^}]*\}", "1", path)


def token(d, name, **more):
    return d.api().post("/v1/tokens", dict(name=name, **more))["token"]


def serve(d, config=""):
    d.write_config("listen = 127.0.0.1:0\n" + config)
    d.start()
    return Client(port_of(d))


@case
def without_a_valid_token_every_route_and_every_other_path_answers_401():
    with Daemon() as d:
        c = serve(d)
        for method, path in routes() + [("GET", "/nothing"), ("GET", "/v1"), ("POST", "/v1/nothing"), ("PUT", "/v1/status")]:
            if (method, path) in ANONYMOUS:
                continue
            got = c.call(method, concrete(path))
            assert got.status == 401 and got.json()["error"]["code"] == "unauthenticated", (method, path, got.status)
            assert got.header("WWW-Authenticate") == 'Bearer realm="jobsched"'
        valid = token(d, "t", role="admin")
        other = valid[:-1] + ("0" if valid[-1] != "0" else "1")
        for wrong in (other, valid[:-1], valid + "0", valid.upper(), "", "x", "jst_", valid.replace("jst_", "jsx_")):
            got = Client(c.port, wrong or " ").call("GET", "/v1/jobs")
            assert got.status == 401, (wrong, got.status)
        for header in ("Basic " + valid, valid, "Bearer", "Token " + valid):
            assert c.call("GET", "/v1/jobs", headers={"Authorization": header}).status in (401, 429), header
        assert c.call("GET", "/v1/jobs", headers={"Authorization": "bearer " + valid}).status == 200
        assert c.call("GET", "/healthz").status == c.call("GET", "/readyz").status == 200
        assert valid not in d.said() and valid[21:] not in d.said(), "the log must not contain tokens"


@case
def a_path_that_is_not_in_its_normal_form_reaches_no_route():
    with Daemon() as d:
        c = serve(d)
        admin = Client(c.port, token(d, "admin", role="admin"))
        for method, path in routes():
            path = concrete(path)
            if path == "/":
                continue
            last = path.rsplit("/", 1)
            for odd in ("/" + path, path.replace("/", "//"), path.replace("/", "%2f"), path.replace("/", "%2F", 1),
                        "/." + path, "/x/.." + path, "/%2e%2e" + path, "/%2e" + path, path + "/", path + "/.", path + "/..",
                        path + ";x=1", path + "%3b", path + "%00", path + "%20", path + ".json", path + "/x/y", path.upper(),
                        last[0] + "\\" + last[1], last[0] + "/%252f" + last[1], path + "%5c", "*", "http://127.0.0.1" + path):
                got = admin.call(method, odd)
                bad = got.status < 400 or got.status in (401, 500)
                # a job or file may have such a name
                name = odd in (path + ".json", path + "%20", path.upper()) and path.endswith("1")
                assert not bad or name, (method, odd, got.status, got.body)
                if not name:
                    assert c.call(method, odd).status in (400, 401), (method, odd)
        assert d.api().get("/v1/jobs")["jobs"] == []


@case
def a_token_in_the_url_is_refused():
    with Daemon() as d:
        c = serve(d)
        secret = token(d, "t")
        for path in ("/v1/jobs?token=" + secret, "/v1/jobs?access_token=" + secret, "/v1/jobs?name=" + secret,
                     "/v1/jobs/" + secret, "/v1/jobs?Token=x", "/?token=" + secret):
            got = Client(c.port, secret).call("GET", path)
            assert got.status == 400 and "URL" in got.json()["error"]["message"], (path, got.status)
        assert secret not in d.said()


VIEWERS = {("DELETE", "/v1/session"), ("POST", "/v1/session"), ("POST", "/v1/callbacks/{callback}")}


@case
def each_role_may_use_exactly_its_routes():
    with Daemon() as d:
        c = serve(d, "requests-burst = 100000\n")
        tokens = {role: token(d, role, role=role) for role in ("viewer", "operator", "admin")}
        admins = {p for m, p in routes() if p.startswith(("/v1/db/", "/v1/tokens", "/v1/freeze", "/v1/thaw", "/v1/nodes/", "/v1/web"))}
        allowed = {"viewer": 0, "operator": 0, "admin": 0}
        for method, path in routes():
            if path in ("/v1/stream", "/v1/db/backup"):
                continue
            least = "admin" if path in admins or (method != "GET" and path.startswith(("/v1/queues", "/v1/owners"))) else \
                "viewer" if method == "GET" or (method, path) in VIEWERS else "operator"
            for role in allowed:
                got = Client(c.port, tokens[role]).call(method, concrete(path))
                may = list(allowed).index(role) >= list(allowed).index(least)
                denied = got.status == 403 and "role" in got.json()["error"]["message"]
                assert may != denied, (method, path, role, got.status, got.body[:200])
                allowed[role] += may
        assert allowed["viewer"] < allowed["operator"] < allowed["admin"], allowed
        scoped = Client(c.port, token(d, "scoped", role="operator", scope="see,pause"))
        assert scoped.call("GET", "/v1/jobs").status == 200
        assert scoped.call("POST", "/v1/jobs", {"command": ["true"]}).status == 403
        assert scoped.call("GET", "/v1/status").status == 403
        assert d.api().call("POST", "/v1/tokens", {"name": "x", "scope": "fly"})[0] == 400


@case
def a_name_that_is_not_of_this_server_is_refused():
    with Daemon() as d:
        c = serve(d, "hosts = jobs.example, other.example\n")
        c.token = token(d, "t")
        for host, status in (("jobs.example", 200), ("OTHER.example:%d" % c.port, 200), ("127.0.0.1", 200), ("[::1]:80", 200),
                             ("localhost:%d" % c.port, 200), ("evil.example", 403), ("jobs.example.evil.example", 403),
                             ("127.0.0.1.evil.example", 403), ("localhost.", 403), ("", 400), ("jobs.example:x", 400),
                             ("user@jobs.example", 403), ("[::1", 400)):
            assert c.call("GET", "/v1/jobs", headers={"Host": host}).status == status, host
        assert c.call("GET", "/v1/jobs", headers={"Host": None}).status == 400
        assert c.call("GET", "/healthz", headers={"Host": "evil.example"}).status == 403


def log_in(d, c, **more):
    """The cookie of a new session."""
    got = c.call("POST", "/v1/session", {"token": token(d, "login%d" % time.monotonic_ns(), **more)}, token=False)
    assert got.status == 200, got.body
    cookie = got.header("Set-Cookie")
    assert re.fullmatch(r"jobsched-%d=jst_[0-9a-f]{16}_[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Strict; Max-Age=\d+" % c.port,
                        cookie), cookie
    return cookie.split(";")[0]


@case
def a_change_from_a_page_of_another_site_is_refused():
    with Daemon() as d:
        c = serve(d)
        cookie = log_in(d, c, role="operator")
        own = "http://127.0.0.1:%d" % c.port
        job = {"command": ["true"], "schedule": "manual"}
        for headers, status in (({"Origin": own}, 201), ({"Sec-Fetch-Site": "same-origin"}, 201),
                                ({"Origin": own, "Sec-Fetch-Site": "same-origin"}, 201), ({}, 403),
                                ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
                                ({"Origin": "https://127.0.0.1:%d" % c.port}, 403), ({"Origin": "http://127.0.0.1:1"}, 403),
                                ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Sec-Fetch-Site": "same-site"}, 403),
                                ({"Origin": own, "Sec-Fetch-Site": "cross-site"}, 403),
                                ({"Origin": own, "Content-Type": "text/plain"}, 415),
                                ({"Origin": own, "Content-Type": "application/x-www-form-urlencoded"}, 415),
                                ({"Origin": own, "Content-Type": None}, 415)):
            got = c.call("POST", "/v1/jobs", job, headers={"Cookie": cookie, **headers})
            assert got.status == status, (headers, got.status, got.body)
        assert c.call("GET", "/v1/jobs", headers={"Cookie": cookie}).status == 200
        got = c.call("OPTIONS", "/v1/jobs", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})
        assert got.status >= 400 and not [k for k, _ in got.headers if k.lower().startswith("access-control")]
        value = cookie.split("=")[1]
        assert Client(c.port, value).call("GET", "/v1/jobs").status == 401, "a session is not a token"
        named = c.call("GET", "/v1/jobs", headers={"Cookie": "jobsched-1=" + value})
        assert named.status == 401, "the cookie of another port is not used"


@case
def a_session_ends_by_logout_by_its_token_and_a_one_time_token_works_once():
    with Daemon() as d:
        c = serve(d)
        own = {"Origin": "http://127.0.0.1:%d" % c.port}
        cookie = log_in(d, c)
        assert c.call("GET", "/v1/session", headers={"Cookie": cookie}).json()["role"] == "viewer"
        got = c.call("DELETE", "/v1/session", headers={"Cookie": cookie, **own})
        assert got.status == 200 and "Max-Age=0" in got.header("Set-Cookie"), got.body
        assert c.call("GET", "/v1/session", headers={"Cookie": cookie}).status == 401
        cookie = log_in(d, c)
        name = [t["name"] for t in d.api().get("/v1/tokens")["tokens"] if t["kind"] == "token"][-1]
        assert d.api().call("DELETE", "/v1/tokens/" + name)[0] == 200
        assert c.call("GET", "/v1/session", headers={"Cookie": cookie}).status == 401, "the session ends with its token"
        once = d.api().post("/v1/tokens/once", {"role": "operator"})["token"]
        assert Client(c.port, once).call("GET", "/v1/jobs").status == 401, "a one-time token is only for a login"
        first, second = (c.call("POST", "/v1/session", {"token": once}) for _ in range(2))
        assert (first.status, second.status) == (200, 401) and first.json()["role"] == "operator"
        assert d.api().call("POST", "/v1/session", {"token": once})[0] == 400
        short = token(d, "short", expires_in=1)
        assert Client(c.port, short).call("GET", "/v1/jobs").status == 200
        wait_until("the token has expired", 20, lambda: Client(c.port, short).call("GET", "/v1/jobs").status == 401)
        d.stop()
        with d.database() as store:
            everything = "\n".join(store.iterdump())
        for secret in (once, short, cookie.split("=")[1]):
            assert secret not in everything and secret[21:] not in everything, "the store must not contain secrets"


@case
def answers_have_exactly_the_golden_headers():
    with Daemon() as d:
        c = serve(d)
        c.token = token(d, "t")
        for method, path, body, status, more in (
                ("GET", "/v1/jobs", None, 200, set()), ("GET", "/v1/jobs/none", None, 404, set()),
                ("GET", "/healthz", None, 200, set()), ("POST", "/v1/freeze", None, 403, set()),
                ("PUT", "/v1/jobs", None, 405, {"Allow"}), ("POST", "/v1/jobs", b"{", 403, set())):
            got = c.call(method, path, body)
            names = {k for k, _ in got.headers}
            assert got.status == status, (method, path, got.status)
            for name, value in GOLDEN.items():
                assert got.header(name) == value, (path, name, got.headers)
            extra = names - set(GOLDEN) - COMMON
            assert extra == more, (path, extra)
        # every route, without a token and with one that may do little
        for method, path in routes():
            if path in ("/", "/ui/{file}", "/v1/stream", "/metrics") or path.endswith("/output"):
                continue
            for who in (c, Client(c.port)):
                got = who.call(method, concrete(path))
                for name, value in GOLDEN.items():
                    assert got.header(name) == value, (method, path, name, got.headers)
                extra = {k for k, _ in got.headers} - set(GOLDEN) - COMMON
                assert extra <= {"WWW-Authenticate", "Retry-After", "Set-Cookie"}, (method, path, extra)


@case
def an_unchanged_list_or_definition_is_not_sent_again():
    with Daemon() as d:
        c = serve(d)
        c.token = token(d, "t", role="operator")
        c.call("POST", "/v1/jobs", {"name": "a", "command": ["true"], "schedule": "manual"})
        for path in ("/v1/jobs", "/v1/jobs/a", "/v1/runs", "/v1/queues", "/v1/jobs/a/revisions"):
            first = c.call("GET", path)
            again = c.call("GET", path, headers={"If-None-Match": '"x", ' + first.header("ETag")})
            assert (again.status, again.body, again.header("ETag")) == (304, b"", first.header("ETag")), (path, again.status)
            assert again.header("Cache-Control") == "private, no-cache"
            assert c.call("GET", path, headers={"If-None-Match": '"x"'}).status == 200
        before = c.call("GET", "/v1/jobs/a").header("ETag")
        c.call("PATCH", "/v1/jobs/a", {"priority": 3})
        assert c.call("GET", "/v1/jobs/a", headers={"If-None-Match": before}).status == 200


@case
def oversized_and_ambiguous_requests_are_refused():
    with Daemon() as d:
        c = serve(d, "body-limit = 2048\n")
        c.token = token(d, "t", role="operator")
        assert c.call("GET", "/v1/jobs", headers={"X-Long": "a" * 20000}).status == 431
        assert c.raw(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith((b"HTTP/1.1 4", b""))
        assert c.call("POST", "/v1/jobs", b"x" * 5000).status == 413
        assert c.call("POST", "/v1/jobs", b"", headers={"Content-Length": "99999999999"}).status == 413
        start = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n" % c.token
        inner = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for odd in ("Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                    "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding : chunked\r\n",
                    "Content-Length: +2\r\n", "Content-Length: 2,2\r\n", "Content-Length: 0x2\r\n", "Content-Length: -1\r\n"):
            raw = c.raw((start + odd + "\r\n0\r\n\r\n" + inner).encode(), timeout=10)
            # the second request would be answered with 401
            assert b"HTTP/1.1 2" not in raw and b"HTTP/1.1 401" not in raw, (odd, raw[:300])
        head = "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\n" % c.token
        assert c.raw((head + "\r\n").encode(), timeout=10).startswith(b"HTTP/1.1 200")
        for twice in ("Host: evil.example", "host: localhost", "Authorization: Bearer x", "Origin: http://a\r\nOrigin: http://b",
                      "Content-Type: text/plain\r\nContent-Type: application/json", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site"):
            assert c.raw((head + twice + "\r\n\r\n").encode(), timeout=10).startswith(b"HTTP/1.1 400"), twice
        assert c.call("GET", "/v1/jobs").status == 200


@case
def slow_clients_are_disconnected_and_delay_nobody():
    with Daemon() as d:
        c = serve(d, "head-timeout = 1\nbody-timeout = 1\n")
        c.token = token(d, "t", role="operator")
        slow = [c.connect() for _ in range(40)]
        for i, sock in enumerate(slow):
            sock.sendall(b"GET /v1/jobs HT" if i % 2 else b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                         b"application/json\r\nContent-Length: 100\r\n\r\n{")
        began = time.monotonic()
        assert c.call("GET", "/v1/jobs").status == 200
        assert time.monotonic() - began < 20  # one slow client after the other would take 40 s
        for sock in slow:
            sock.settimeout(20)
            try:
                while sock.recv(4096):
                    pass
            except ConnectionError:
                pass
            sock.close()


@case
def failed_logins_are_throttled_and_a_valid_token_is_not():
    with Daemon() as d:
        c = serve(d, "requests-per-second = 1\nrequests-burst = 30\n")
        c.token = token(d, "t")
        wrong = Client(c.port, c.token[:-8] + "00000000")
        seen = [wrong.call("GET", "/v1/jobs").status for _ in range(30)]
        assert seen[:20] == [401] * 20 and 429 in seen[20:], seen
        got = wrong.call("POST", "/v1/session", {"token": "x"})
        assert got.status == 429 and got.header("Retry-After") == "1"
        assert c.call("GET", "/v1/jobs").status == 200, "the address is shared with other users"
        seen = [c.call("GET", "/healthz", token=False).status for _ in range(40)] + [c.call("GET", "/v1/session").status for _ in range(40)]
        assert 429 in seen[40:] and seen[40] == 200, seen
        other = Client(c.port, token(d, "other"))
        assert other.call("GET", "/v1/session").status == 200, "the limit is per token"


@case
def streams_can_be_resumed():
    with Daemon() as d:
        c = serve(d)
        c.token = token(d, "t", role="operator")
        s = c.stream("/v1/stream")
        first = s.wait("ready")
        job = c.call("POST", "/v1/jobs", {"name": "a", "command": ["sh", "-c", "printf 'h\\303\\244\\377'; sleep 0.3"]}).json()
        added, started, ended = s.wait("job.add"), s.wait("run.start"), s.wait("run.end")
        assert added[0] > first[0] and added[2]["job"] == job["id"] and started[2]["run"] == ended[2]["run"] == job["run"]
        assert ended[2]["result"] == "succeeded"
        s.close()
        s = c.stream("/v1/stream", {"Last-Event-ID": str(first[0])})
        assert s.wait("reset") and s.wait("job.add")[0] == added[0]
        s.close()
        assert c.call("GET", "/v1/stream", headers={"Last-Event-ID": "x"}).status == 400
        s = c.stream("/v1/runs/%d/output?follow=true" % job["run"])
        end = s.wait("end")
        assert "".join(m[2]["text"] for m in s.messages() if m[1] == "output") == "h\u00e4\ufffd" and end[0] == 4
        s.close()
        s = c.stream("/v1/runs/%d/output?follow=true" % job["run"], {"Last-Event-ID": "3"})
        s.wait("end")
        assert [m[2] for m in s.messages() if m[1] == "output"] == [{"offset": 3, "text": "\ufffd"}]
        s.close()


@case
def a_listener_for_other_machines_needs_tls():
    with Daemon("listen = 0.0.0.0:0\n") as d:
        code, said = d.run()
        assert code == 78 and "needs TLS" in said and "tls-certificate" in said, (code, said)
    with Daemon("listen = somewhere\n") as d:
        code, said = d.run()
        assert code == 78 and "ADDRESS:PORT" in said, (code, said)
    with Daemon("jwt-key-file = /etc/hostname\nlisten = 127.0.0.1:0\n") as d:
        code, said = d.run()
        assert code == 78 and "jwt-audience" in said, (code, said)


@case
def authentication_cannot_be_switched_off():
    for line in ("authentication = off", "auth = none", "anonymous = true", "jwt-key-file = /nonexistent\njwt-audience = x",
                 "jwt-key-file = /dev/null\njwt-audience = x", "jwt-key-file = /etc/hostname\njwt-audience = x"):
        with Daemon("listen = 127.0.0.1:0\n" + line + "\n") as d:
            code, said = d.run()
            assert code == 78 and line.split(" ")[0] in said, (line, code, said)


@case
def jobctl_web_serves_the_page_until_it_ends():
    with Daemon() as d:
        d.start()
        web = subprocess.Popen([JOBCTL, "web", "--no-browser"], env=d.env, stdout=subprocess.PIPE, text=True)
        url = web.stdout.readline().strip()
        port, secret = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=(jst_\w+)", url).groups()
        c = Client(int(port))
        assert c.call("GET", "/healthz").status == 200 and c.call("GET", "/v1/jobs").status == 401
        got = c.call("POST", "/v1/session", {"token": secret})
        assert got.status == 200 and got.json()["role"] == "viewer"
        web.terminate()
        web.wait()

        def refused():
            try:
                socket.create_connection(("127.0.0.1", int(port)), 5).close()
            except ConnectionRefusedError:
                return True
            return False
        wait_until("the listener is closed", 20, refused)
        assert d.stop() == 0


if __name__ == "__main__":
    main()
