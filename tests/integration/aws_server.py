# SPDX-License-Identifier: Apache-2.0
# A Lambda service and the endpoints of AWS credentials, for tests. Signatures are verified by hmac, without libcurl.
import base64
import datetime
import hashlib
import hmac
import json
import select
import socket
import threading
import time
import urllib.parse

from web import Web


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def signature_error(method, target, headers, body, secrets, region, service):
    """What is wrong with a request signed by AWS Signature Version 4; None: nothing. 'secrets': {key id: (secret, token)}."""
    algorithm, _, rest = (headers.get("Authorization") or "").partition(" ")
    parts = dict(p.strip().split("=", 1) for p in rest.split(",") if "=" in p)
    if algorithm != "AWS4-HMAC-SHA256" or set(parts) != {"Credential", "SignedHeaders", "Signature"}:
        return "no signature: %s" % headers.get("Authorization")
    key, day, *scope = parts["Credential"].split("/")
    if key not in secrets:
        return "unknown key %s" % key
    secret, token = secrets[key]
    moment = headers["X-Amz-Date"]
    at = datetime.datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if scope != [region, service, "aws4_request"] or not moment.startswith(day) or abs(at.timestamp() - time.time()) > 900:
        return "wrong scope or time: %s %s" % (parts["Credential"], moment)
    if headers.get("X-Amz-Security-Token") != token:
        return "wrong security token"
    signed = parts["SignedHeaders"].split(";")
    needed = {n.lower() for n in headers.keys() if n.lower().startswith("x-amz-")} | {"host", "content-type"}
    if signed != sorted(signed) or not needed <= set(signed):
        return "signed headers %s without %s" % (signed, needed - set(signed))
    path, _, query = target.partition("?")
    pairs = sorted(p.partition("=")[::2] for p in query.split("&") if p)
    canonical = "\n".join([
        method, urllib.parse.quote(path, safe="/-_.~"), "&".join("%s=%s" % p for p in pairs),
        "".join("%s:%s\n" % (n, " ".join(headers[n].split())) for n in signed), ";".join(signed), sha256(body)])
    text = "\n".join(["AWS4-HMAC-SHA256", moment, "/".join([day] + scope), sha256(canonical.encode())])
    k = ("AWS4" + secret).encode()
    for word in [day] + scope:
        k = hmac.new(k, word.encode(), hashlib.sha256).digest()
    if hmac.new(k, text.encode(), hashlib.sha256).hexdigest() != parts["Signature"]:
        return "wrong signature of %r" % canonical
    return None


class Aws(Web):
    """
    Invocations are recorded in self.calls. The name of the function says what it does: echo, fails, status-N, throttled (until
    self.release is set), slow, cut, large, expired (the first key is refused).
    /container and the paths of the metadata service give keys that are valid for self.lifetime seconds.
    """
    region = "eu-test-1"

    def __init__(self):
        self.calls, self.errors, self.fetches, self.left = [], [], [], []
        self.secrets = {"AKIDTEST": ("secret/of+the=test", None)}
        self.lifetime, self.slow_keys, self.release = 3600, 0, threading.Event()
        super().__init__(protocol_version="HTTP/1.1", do_POST=lambda r: self.invoke(r), do_GET=lambda r: self.get(r), do_PUT=lambda r: self.put(r))

    def answer(self, request, status, text, headers=()):
        data = text if isinstance(text, bytes) else text.encode()
        request.send_response(status)
        for name, value in headers:
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    # ---- Lambda ----

    def invoke(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        path, _, query = request.path.partition("?")
        words = path.split("/")
        wrong = signature_error("POST", request.path, request.headers, body, self.secrets, self.region, "lambda")
        if words[1:3] != ["2015-03-31", "functions"] or words[4:] != ["invocations"]:
            wrong = "wrong path " + path
        if wrong:
            self.errors.append(wrong)
            self.answer(request, 403, json.dumps({"message": wrong}))
            return
        name = words[3]
        self.calls.append(dict(name=name, query=query, headers=request.headers, body=body, at=time.monotonic()))
        self.act(request, name, body)

    def act(self, request, name, body):
        log = ("X-Amz-Log-Result", base64.b64encode(b"START\nline of the log\nEND\n").decode())
        event = request.headers["X-Amz-Invocation-Type"] == "Event"
        while name == "slow" and not self.release.wait(0.05):
            if select.select([request.connection], [], [], 0)[0] and not request.connection.recv(1, socket.MSG_PEEK):
                self.left.append(time.monotonic())
                request.close_connection = True
                return
        if name == "cut":
            request.send_response(200)
            request.send_header("Content-Length", "1000")
            request.end_headers()
            request.wfile.write(b"part")
            request.close_connection = True
        elif name == "fails":
            self.answer(request, 200, '{"errorMessage": "no space", "errorType": "OSError"}', [("X-Amz-Function-Error", "Unhandled"), log])
        elif name == "throttled" and not self.release.is_set():
            self.answer(request, 429, '{"Reason": "ReservedFunctionConcurrentInvocationLimitExceeded"}', [("Retry-After", "1")])
        elif name == "expired" and len(self.secrets) == 2:
            self.answer(request, 403, '{"message": "The security token included in the request is expired"}')
        elif name.startswith("status-"):
            self.answer(request, int(name.split("-")[1]), '{"message": "as asked"}')
        elif name == "large":
            self.answer(request, 200, b"x" * 100000, [log])
        else:
            self.answer(request, 202 if event else 200, b"" if event else body, [] if event else [log])

    def effective(self):
        return {c["headers"]["Idempotency-Key"] for c in self.calls}

    # ---- credentials ----

    def new_keys(self, request):
        n = len(self.fetches)
        time.sleep(self.slow_keys)
        self.fetches.append(request.path)
        key, secret, token = "ASIATEST%d" % n, "secret %d/+=".replace(" ", "-") % n, "token-%d" % n
        self.secrets[key] = (secret, token)
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.lifetime)
        self.answer(request, 200, json.dumps({"Code": "Success", "AccessKeyId": key, "SecretAccessKey": secret, "Token": token,
                                              "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")}))

    def get(self, request):
        if request.path == "/container" and request.headers["Authorization"] == "container-token":
            self.new_keys(request)
        elif request.headers["X-aws-ec2-metadata-token"] != "session-of-the-machine":
            self.answer(request, 401, "")
        elif request.path == "/latest/meta-data/iam/security-credentials/":
            self.answer(request, 200, "role-of-the-machine")
        elif request.path == "/latest/meta-data/iam/security-credentials/role-of-the-machine":
            self.new_keys(request)
        else:
            self.answer(request, 404, "")

    def put(self, request):
        good = request.path == "/latest/api/token" and request.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self.answer(request, 200 if good else 400, "session-of-the-machine" if good else "")
