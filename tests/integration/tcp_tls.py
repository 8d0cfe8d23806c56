# SPDX-License-Identifier: Apache-2.0
# The API over TLS: certificates, JSON web tokens, jobctl, and tokens of several users.
import base64
import hashlib
import hmac
import json
import os
import re
import ssl
import subprocess
import sys
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from certificates import make_certificates, openssl
from harness import CONTRACT, Daemon, case, main, need_root, wait_until
from system import System
from tcp_client import Client, port_of


def tls_config(pki):
    return "listen = 127.0.0.1:0\ntls-certificate = %s/server.pem\ntls-key = %s/server.key\n" % (pki, pki)


def context(pki, client=False):
    c = ssl.create_default_context(cafile=pki + "/ca.pem")
    if client:
        c.load_cert_chain(pki + "/client.pem", pki + "/client.key")
    return c


def new_token(d, name, **more):
    return d.api().post("/v1/tokens", dict(name=name, **more))["token"]


@case
def other_machines_cannot_connect_before_there_is_a_token():
    with Daemon() as d:
        pki = make_certificates(d)
        d.write_config(tls_config(pki).replace("listen = 127.0.0.1:0", "listen = 0.0.0.0:0"))
        d.start()
        port = int(re.search(r"listening on https://0\.0\.0\.0:(\d+)", d.said()).group(1))

        def answers():
            try:
                return Client(port, None, context(pki)).call("GET", "/healthz").status == 200
            except OSError:
                return False
        assert not answers() and "there is no token; 'jobctl token add NAME'" in d.said(), d.said()
        t = new_token(d, "t", role="viewer")
        assert answers(), "the first token was created over the Unix socket"
        assert Client(port, t, context(pki)).call("GET", "/v1/jobs").status == 200
        assert Client(port, None, context(pki)).call("GET", "/v1/jobs").status == 401
    with Daemon() as d:
        pki = make_certificates(d)
        with open(pki + "/secret", "w") as f:
            f.write("s" * 40)
        d.write_config(tls_config(pki).replace("127.0.0.1", "0.0.0.0") + "jwt-key-file = %s/secret\njwt-audience = a\n" % pki)
        d.start()
        port = int(re.search(r"listening on https://0\.0\.0\.0:(\d+)", d.said()).group(1))
        assert Client(port, None, context(pki)).call("GET", "/healthz").status == 200


@case
def a_changed_certificate_is_used_without_a_restart():
    with Daemon() as d:
        pki = make_certificates(d)
        d.write_config(tls_config(pki))
        d.start()
        c = Client(port_of(d), new_token(d, "t", role="operator"), context(pki))
        cookie = c.call("POST", "/v1/session", {"token": c.token}, token=False).header("Set-Cookie")
        assert cookie.startswith("__Host-jobsched=jst_") and cookie.endswith("; Secure") and "Path=/" in cookie, cookie
        assert c.call("GET", "/v1/jobs").status == 200
        assert not Client(c.port, c.token).call("GET", "/v1/jobs").status, "plain HTTP is not answered"

        def serial():
            with c.connect() as sock:
                return sock.getpeercert()["serialNumber"]
        before = serial()
        kept = c.connect()  # stays open with the old certificate
        make_certificates(d)
        wait_until("the new certificate is used", 30, lambda: serial() != before, pause=0.5)
        kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert kept.recv(4096).startswith(b"HTTP/1.1 200"), "open connections continue"
        kept.close()
        with open(pki + "/server.key", "w") as f:
            f.write("broken")
        wait_until("the error is logged", 30, lambda: "previous TLS certificate stays in use" in d.said(), pause=0.5)
        assert c.call("GET", "/v1/jobs").status == 200
        old = ssl.create_default_context(cafile=pki + "/ca.pem")
        try:
            with warnings.catch_warnings(action="ignore"):
                old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1
            Client(c.port, tls=old).connect()
            raise AssertionError("TLS 1.1 must be refused")
        except (ssl.SSLError, ConnectionError, ValueError):
            pass


@case
def with_a_client_authority_every_client_needs_a_certificate():
    with Daemon() as d:
        pki = make_certificates(d)
        d.write_config(tls_config(pki) + "tls-client-ca = %s/ca.pem\n" % pki)
        d.start()
        secret = new_token(d, "t")
        got = Client(port_of(d), secret, context(pki)).call("GET", "/v1/jobs")
        assert got.status == 401 and "certificate" in got.json()["error"]["message"], got.body
        assert Client(port_of(d), secret, context(pki, client=True)).call("GET", "/v1/jobs").status == 200
        assert Client(port_of(d), None, context(pki, client=True)).call("GET", "/v1/jobs").status == 401, "the token is needed too"


@case
def jobctl_works_over_tls_with_a_token_file_and_with_contexts():
    with Daemon() as d:
        pki = make_certificates(d)
        d.write_config(tls_config(pki))
        d.start()
        where = os.path.join(d.dir, "token")
        with open(os.open(where, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(d.jobctl("token", "add", "remote", "--role", "operator", "--expires", "1h").stdout)
        url = "https://localhost:%d" % port_of(d)
        d.env.pop("JOBSCHED_SOCKET")
        d.env["XDG_CONFIG_HOME"] = os.path.join(d.dir, "config")
        remote = ("--url", url, "--token-file", where, "--ca-file", pki + "/ca.pem")
        job = d.jobctl(*remote, "add", "-n", "far", "--", "echo", "hello").stdout.strip()
        d.jobctl(*remote, "wait", job)
        assert d.jobctl(*remote, "log", "far").stdout == "hello\n"
        denied = d.jobctl(*remote, "freeze", check=False)
        assert denied.returncode == 4 and "role 'operator'" in denied.stderr, denied.stderr
        assert d.jobctl("--url", url, "--token-file", where, "list", check=False).returncode == 5, "the authority is unknown"
        other = d.jobctl("--url", url.replace("localhost", "127.0.0.1"), "--token-file", where, "--ca-file", pki + "/ca.pem", "list",
                         check=False)
        assert other.returncode == 5 and "certificate" in other.stderr, other.stderr
        assert d.jobctl("--url", "http://example.com", "list", check=False).returncode == 2
        os.chmod(where, 0o644)
        readable = d.jobctl(*remote, "list", check=False)
        assert readable.returncode == 4 and "chmod 600" in readable.stderr, readable.stderr
        os.chmod(where, 0o600)
        d.jobctl("context", "add", "prod", *remote)
        d.jobctl("context", "use", "prod")
        assert "far" in d.jobctl("list", "--all").stdout
        assert json.loads(d.jobctl("context", "list", "--json").stdout)[0]["current"] is True
        assert "far" in d.jobctl("--socket", d.socket, "list", "--all").stdout
        d.jobctl("--socket", d.socket, "token", "revoke", "remote")
        gone = d.jobctl("list", check=False)
        assert gone.returncode == 4 and "token" in gone.stderr, gone.stderr
        d.jobctl("context", "rm", "prod")
        d.jobctl("list")


# ---- JSON web tokens ----

def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def raw_ecdsa(der):
    """The two numbers of a DER signature, 32 bytes each."""
    numbers, at = [], 2
    for _ in range(2):
        length = der[at + 1]
        numbers.append(der[at + 2:at + 2 + length].lstrip(b"\0").rjust(32, b"\0"))
        at += 2 + length
    return b"".join(numbers)


def jwt(alg, key, claims, header=()):
    text = b64(json.dumps({"alg": alg, "typ": "JWT", **dict(header)}).encode()) + "." + b64(json.dumps(claims).encode())
    data = text.encode()
    if alg == "HS256":
        signature = hmac.new(key, data, hashlib.sha256).digest()
    elif alg == "EdDSA":
        with open(key + ".data", "wb") as f:
            f.write(data)
        signature = openssl("pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", key + ".data")
    elif alg == "none":
        signature = b""
    else:
        signature = openssl("dgst", "-sha256", "-sign", key, input=data)
        signature = raw_ecdsa(signature) if alg == "ES256" else signature
    return text + "." + b64(signature)


KEYS = {"RS256": ("-algorithm", "RSA"), "ES256": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        "EdDSA": ("-algorithm", "ED25519")}


@case
def json_web_tokens_are_verified():
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    good = {"sub": user, "aud": "jobsched", "exp": int(time.time()) + 600, "jobsched_role": "operator"}
    for alg in ("HS256", *KEYS):
        with Daemon() as d:
            private = d.dir + "/private"
            if alg == "HS256":
                key = os.urandom(32).hex().encode()
                with open(d.dir + "/key", "wb") as f:
                    f.write(key + b"\n")
            else:
                key = private
                openssl("genpkey", *KEYS[alg], "-out", private)
                openssl("pkey", "-in", private, "-pubout", "-out", d.dir + "/key")
            d.write_config("listen = 127.0.0.1:0\njwt-key-file = %s/key\njwt-audience = jobsched\n" % d.dir)
            d.start()

            def status(text, method="GET", path="/v1/session", body=None):
                return Client(port_of(d), text).call(method, path, body).status
            assert status(jwt(alg, key, good)) == 200, alg
            assert status(jwt(alg, key, good), "POST", "/v1/jobs", {"command": ["true"], "schedule": "manual"}) == 201
            assert status(jwt(alg, key, good), "POST", "/v1/freeze") == 403
            assert status(jwt(alg, key, dict(good, jobsched_role="viewer")), "POST", "/v1/jobs", {"command": ["true"]}) == 403
            assert status(jwt(alg, key, dict(good, aud=["x", "jobsched"]))) == 200
            for claims in (dict(good, exp=int(time.time()) - 1), dict(good, aud="other"), dict(good, aud=[]),
                           {k: v for k, v in good.items() if k != "exp"}, {k: v for k, v in good.items() if k != "aud"},
                           dict(good, nbf=int(time.time()) + 3600), dict(good, sub="no-such-user"), dict(good, sub=""),
                           dict(good, jobsched_role="king"), dict(good, exp="soon")):
                assert status(jwt(alg, key, claims)) in (401, 429), (alg, claims)
            text = jwt(alg, key, good)
            for broken in (jwt("none", key, good), text[:-6], text[:-6] + "AAAAAA", text.split(".")[0] + "." + "e30." + "x",
                           jwt("HS256", open(d.dir + "/key", "rb").read(), good) if alg != "HS256" else "a.b.c"):
                assert status(broken) in (401, 429), (alg, broken)


def web_key(alg, key, kid):
    """The public half of a key as a member of a JWKS; 'key' is the secret for HS256, else the file of a private key."""
    if alg == "HS256":
        return {"kty": "oct", "k": b64(key), "kid": kid}
    der = openssl("pkey", "-in", key, "-pubout", "-outform", "DER")
    if alg == "EdDSA":
        return {"kty": "OKP", "crv": "Ed25519", "x": b64(der[-32:]), "kid": kid}
    if alg == "ES256":
        return {"kty": "EC", "crv": "P-256", "x": b64(der[-64:-32]), "y": b64(der[-32:]), "kid": kid}
    modulus = bytes.fromhex(openssl("rsa", "-in", key, "-noout", "-modulus").decode().strip().split("=")[1])
    return {"kty": "RSA", "n": b64(modulus), "e": "AQAB", "kid": kid, "use": "sig"}


@case
def a_json_web_key_set_is_used_by_key_id_and_read_again_when_it_changes():
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    good = {"sub": user, "aud": "jobsched", "exp": int(time.time()) + 600, "jobsched_role": "operator"}
    with Daemon() as d:
        keys = {"HS256": os.urandom(32)}
        for alg, options in KEYS.items():
            keys[alg] = d.dir + "/" + alg
            openssl("genpkey", *options, "-out", keys[alg])
        openssl("genpkey", *KEYS["RS256"], "-out", d.dir + "/other")
        every = [web_key(alg, key, "key-" + alg) for alg, key in keys.items()] + [web_key("RS256", d.dir + "/other", "key-other")]

        def write(members):
            with open(d.dir + "/jwks.new", "w") as f:
                json.dump({"keys": members}, f)
            os.rename(d.dir + "/jwks.new", d.dir + "/jwks")
        write(every)
        d.write_config("listen = 127.0.0.1:0\njwt-key-file = %s/jwks\njwt-audience = jobsched\n" % d.dir)
        d.start()

        def status(text):
            return Client(port_of(d), text).call("GET", "/v1/session").status
        for alg, key in keys.items():
            assert status(jwt(alg, key, good, {"kid": "key-" + alg})) == status(jwt(alg, key, good)) == 200, alg
            for kid in ("key-other", "none", ""):
                assert status(jwt(alg, key, good, {"kid": kid})) in (401, 429), (alg, kid)
        assert status(jwt("RS256", d.dir + "/other", good, {"kid": "key-RS256"})) in (401, 429), "the key has another id"
        forged = d.dir + "/forged"
        openssl("genpkey", *KEYS["RS256"], "-out", forged)
        for header in ({"jwk": web_key("RS256", forged, "key-RS256")}, {"jku": "http://127.0.0.1:1/"}, {"crit": ["b64"], "b64": False}):
            assert status(jwt("RS256", forged, good, header)) in (401, 429), header
        write([k for k in every if k["kid"] != "key-RS256"])
        wait_until("the removed key is refused", 60, lambda: status(jwt("RS256", keys["RS256"], good, {"kid": "key-RS256"})) == 401, 3)
        assert status(jwt("ES256", keys["ES256"], good, {"kid": "key-ES256"})) == 200
        with open(d.dir + "/jwks", "w") as f:
            f.write("{")
        assert status(jwt("ES256", keys["ES256"], good)) == 200, "the keys before stay in use"


# ---- several users ----

@case
def tokens_act_for_their_owner_only():
    need_root()
    with System(engine_conf="listen = 127.0.0.1:0\n") as s:
        s.start()
        wait_until("the listener", 20, lambda: "listening on http" in s.said())
        port = port_of(s)

        def add(by, name, **more):
            owner = more.pop("owner", None)
            return s.api(by).call("POST", "/v1/tokens" + ("?as=" + owner if owner else ""), dict(name=name, **more))

        def client(by, name, **more):
            status, got = add(by, name, **more)
            assert status == 201, got
            return Client(port, got["token"])
        job = s.add("alice", name="secret", command=["id", "-un"], schedule="manual")["id"]
        roots = int(s.jobctl("root", "add", "-n", "roots", "--manual", "--", "id").stdout)
        alice, bob = client("alice", "a", role="operator"), client("bob", "b", role="operator")
        carol, viewer = client("carol", "c", role="admin"), client("carol", "v", all=True)
        root, roots_viewer = client("root", "r", role="admin"), client("root", "rv")
        ours = client("carol", "for-alice", owner="alice", role="operator")
        for who, sees, changes, sees_root, runs_root in ((alice, True, True, False, False), (bob, False, False, False, False),
                                                         (carol, True, True, True, False), (viewer, True, False, True, False),
                                                         (root, True, True, True, True), (ours, True, True, False, False),
                                                         (roots_viewer, False, False, True, False)):
            name = who.call("GET", "/v1/session").json()
            assert who.call("GET", "/v1/jobs/%d" % job).status == (200 if sees else 404), name
            assert who.call("GET", "/v1/jobs/%d" % roots).status == (200 if sees_root else 404), name
            listed = who.call("GET", "/v1/jobs").json()["jobs"]
            assert {j["id"] for j in listed} == {i for i, may in ((job, sees), (roots, sees_root)) if may}, (name, listed)
            assert (who.call("PATCH", "/v1/jobs/%d" % job, {"priority": 3}).status == 200) == changes, name
            assert (who.call("POST", "/v1/jobs/%d/run" % roots).status in (200, 201)) == runs_root, name
        assert alice.call("POST", "/v1/jobs?as=bob", {"command": ["id"]}).status == 403
        assert carol.call("POST", "/v1/jobs?as=bob", {"command": ["id"], "schedule": "manual"}).status == 201
        assert carol.call("POST", "/v1/jobs?as=root", {"command": ["id"]}).status == 403
        mine = alice.call("POST", "/v1/jobs", {"command": ["id", "-un"]}).json()
        run = s.wait_final("alice", mine["id"])
        assert s.output("alice", run["id"]) == "alice\n"
        # a job of root without a warrant is refused, as on the Unix socket
        refused = root.call("POST", "/v1/jobs", {"command": ["id"]})
        assert refused.status == 403 and refused.json()["error"]["field"] == "warrant", refused.body
        for by, more, status in (("alice", {"role": "admin"}, 403), ("alice", {"all": True}, 403), ("alice", {"owner": "bob"}, 403),
                                 ("alice", {"owner": "root"}, 403), ("carol", {"owner": "root"}, 403),
                                 ("alice", {"role": "king"}, 400), ("carol", {"role": "operator", "all": True}, 400),
                                 ("alice", {"name": "no/slash"}, 400), ("root", {"owner": "root", "role": "operator"}, 201)):
            name = more.pop("name", "n")
            assert add(by, name, **more)[0] == status, (by, more)
        assert {t["owner"] for t in s.api("alice").get("/v1/tokens")["tokens"]} == {"alice"}
        assert s.api("bob").call("DELETE", "/v1/tokens/a")[0] == 404
        assert s.api("carol").call("DELETE", "/v1/tokens/r")[0] == 404, "administrators cannot revoke tokens of root"
        assert s.api("alice").call("DELETE", "/v1/tokens/a")[0] == 200 and alice.call("GET", "/v1/jobs").status == 401
        events = s.api("root").get("/v1/events?what=token.add")["events"]
        assert {e["who"] for e in events} >= {"alice", "carol", "root"}


@case
def no_route_shows_or_changes_an_object_of_another_owner():
    """Every method and path of the table, with the role that may use it, against objects of another user."""
    need_root()
    with System(engine_conf="listen = 127.0.0.1:0\nrequests-burst = 100000\n") as s:
        s.start()
        wait_until("the listener", 20, lambda: "listening on http" in s.said())
        job = s.add("alice", name="alices-job", command=["echo", "alices-output"], schedule="manual")["id"]
        run = s.api("alice").call("POST", "/v1/jobs/%d/run" % job)[1]["id"]
        s.wait_final("alice", job)
        assert s.api("alice").call("PUT", "/v1/templates/alices-template", {"command": ["true"]})[0] in (200, 201)
        for name in ("alices-token", "keep"):
            assert s.api("alice").call("POST", "/v1/tokens", {"name": name})[0] == 201
        bob = Client(port_of(s), s.api("bob").call("POST", "/v1/tokens", {"name": "b", "role": "operator"})[1]["token"])
        values = {"job": (str(job), "alices-job"), "run": (str(run),), "template": ("alices-template",), "token": ("alices-token",),
                  "queue": ("default",), "owner": ("alice",), "node": ("n1",), "file": ("app.js",),
                  "callback": ("%d.1.%s" % (run, "0" * 64),)}

        def look():
            return [s.api("alice").get(path) for path in ("/v1/jobs/%d" % job, "/v1/runs/%d" % run, "/v1/templates/alices-template",
                                                          "/v1/jobs/%d/revisions" % job)]
        before, tried = look(), 0
        for path, operations in CONTRACT.file["paths"].items():
            names = re.findall(r"{(\w+)}", path)
            for method in (m.upper() for m in operations if m.upper() in ("GET", "POST", "PUT", "PATCH", "DELETE")):
                if path in ("/v1/stream", "/v1/session", "/v1/events"):  # events of bob name the objects that were refused
                    continue
                for value in values[names[0]] if names else ("",):
                    body = {} if "requestBody" in operations[method.lower()] else None
                    got = bob.call(method, path.replace("{%s}" % "".join(names), value) if names else path, body)
                    tried += 1
                    assert b"alices-" not in got.body or (got.status >= 400 and names), (method, path, got.status, got.body[:300])
                    if names and names[0] in ("job", "run", "token") or (names == ["template"] and method != "PUT"):
                        assert got.status in (400, 403, 404), (method, path, value, got.status, got.body[:300])
        assert tried > 70 and look() == before, tried
        assert {t["name"] for t in s.api("alice").get("/v1/tokens")["tokens"]} == {"alices-token", "keep"}
        for verb in ("pause", "resume", "run", "tag?set=a%3Db"):
            got = bob.call("POST", "/v1/bulk/" + verb)
            assert got.json()["count"] == 0, (verb, got.body)
        assert look() == before


if __name__ == "__main__":
    main()
