# SPDX-License-Identifier: Apache-2.0
# An S3 server for tests. It verifies signatures (AWS Signature Version 4) by code of its own, and can fail on request.
import calendar
import hashlib
import hmac
import json
import sqlite3
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

from web import Web

KEY, SECRET, REGION, BUCKET = "AKTEST", "s3cr3t/+key", "eu-test-1", "history"
KEYS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
DAY = 86400 * 1000000


def age(path, days=40):
    """Makes all runs and jobs in the store of a stopped daemon older."""
    db = sqlite3.connect(path)
    for table, columns in {"runs": ("slot", "slot_last", "due_at", "created_at", "started_at", "ended_at"),
                           "jobs": ("created_at", "updated_at")}.items():
        for column in columns:
            db.execute(f"UPDATE {table} SET {column} = {column} - ? WHERE {column} > ?", (days * DAY, 100 * DAY))
    db.commit()
    db.close()


def old_runs(d, scripts, days=40):
    """Runs each command once and makes the history older than it is kept. The daemon is stopped then."""
    ids = []
    for n, script in enumerate(scripts):
        ids.append(d.add(name="old%d" % n, script=script)["id"])
    for i in ids:
        d.wait_final(i, 60)
    runs = {r["job"]: r for r in d.runs()}
    d.stop()
    age(d.db_path, days)
    return [runs[i] for i in ids]


def prune(d, check=True):
    return d.jobctl("db", "prune", "--yes", check=check)


def record(storage, run):
    found = [n for n in storage.names("cold/runs/") if "-r%d-" % run["id"] in n]
    assert len(found) == 1, (run["id"], storage.names())
    return json.loads(storage.objects[found[0]])["run"]


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def quoted(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-_.~")


def expected_signature(request, query, signed, scope, payload, secret):
    """The signature that the documentation of AWS defines, from the request as it arrived."""
    date, region, service, _ = scope.split("/")
    path = quoted(urllib.parse.unquote(request.path.split("?")[0]), safe="/")
    canonical = "\n".join([
        request.command, path,
        "&".join("%s=%s" % (quoted(k), quoted(v)) for k, v in sorted(query)),
        *("%s:%s" % (name, " ".join(request.headers[name].split())) for name in signed), "",
        ";".join(signed), payload])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = digest(digest(digest(digest(b"AWS4" + secret.encode(), date), region), service), "aws4_request")
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


class Storage(Web):
    """'objects' has the content, 'puts' the names in the order of the uploads, 'refused' the reasons of refusals."""

    def __init__(self, bucket=BUCKET, keys=None, token=None, virtual=None):
        self.objects, self.puts, self.requests, self.refused = {}, [], [], []
        self.bucket, self.keys, self.token, self.virtual = bucket, keys or {KEY: SECRET}, token, virtual
        self.fail = lambda request, name, count: None  # returns a status, 'cut', 'slow', 'stored' or None
        self.lock, self.count = threading.Lock(), 0
        super().__init__(protocol_version="HTTP/1.1", do_GET=self.answer_to, do_PUT=self.answer_to)

    @property
    def answer_to(self):
        def safely(request):
            try:
                self.answer(request)
            except (KeyError, ValueError, TypeError, AttributeError) as e:
                self.refused.append((request.command, request.path, repr(e)))
                raise
        return safely

    @property
    def config(self):
        return "archive = s3://%s/cold\ns3-endpoint = %s\ns3-region = %s\n" % (self.bucket, self.url, REGION)

    def names(self, start="cold/"):
        return sorted(n for n in self.objects if n.startswith(start))

    def check(self, request, query, body):
        """The reason why the request is refused; None: its signature is right."""
        words = dict(w.strip().split("=", 1) for w in request.headers.get("Authorization", "").replace("AWS4-HMAC-SHA256", "").split(",") if "=" in w)
        if not {"Credential", "SignedHeaders", "Signature"} <= set(words):
            return "AccessDenied"
        key, scope = words["Credential"].split("/", 1)
        signed = words["SignedHeaders"].split(";")
        payload = request.headers.get("x-amz-content-sha256", "")
        stamp = request.headers.get("x-amz-date", "")
        if key not in self.keys:
            return "InvalidAccessKeyId"
        if self.token and request.headers.get("x-amz-security-token") != self.token:
            return "InvalidToken"
        if scope != "%s/%s/s3/aws4_request" % (stamp[:8], REGION):
            return "AuthorizationHeaderMalformed"
        needed = {"host", "x-amz-content-sha256", "x-amz-date"} | ({"x-amz-security-token"} if self.token else set())
        if not needed <= set(signed) or signed != sorted(signed):
            return "SignedHeadersIncomplete"
        if abs(time.time() - calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%SZ"))) > 900:
            return "RequestTimeTooSkewed"
        if expected_signature(request, query, signed, scope, payload, self.keys[key]) != words["Signature"]:
            return "SignatureDoesNotMatch"
        if payload != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch"
        return None

    def send(self, request, status, body=b"", headers=()):
        request.send_response(status)
        for name, value in headers:
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def send_error(self, request, status, code):
        self.send(request, status, b"<?xml version='1.0'?><Error><Code>%s</Code><Message>of the test</Message></Error>" % code.encode())

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        path, _, text = request.path.partition("?")
        query = urllib.parse.parse_qsl(text, keep_blank_values=True)
        name = urllib.parse.unquote(path)[1:]
        if self.virtual:
            host = request.headers["Host"].split(":")[0]
            bucket = host.split(".")[0] if host.endswith(self.virtual) else None
        else:
            bucket, _, name = name.partition("/")
        with self.lock:
            self.count += 1
            self.requests.append((request.command, request.path))
            wanted = self.fail(request, name, self.count)
        if wanted == "slow":
            time.sleep(3)
        if wanted == "cut":
            request.close_connection = True
            return
        if isinstance(wanted, int):
            self.send_error(request, wanted, "InjectedFailure")
            return
        reason = self.check(request, query, body)
        if reason:
            self.refused.append((request.command, request.path, reason))
            self.send_error(request, 403, reason)
        elif bucket != self.bucket:
            self.send_error(request, 404, "NoSuchBucket")
        elif request.command == "PUT":
            with self.lock:
                self.objects[name] = body
                self.puts.append(name)
            if wanted == "stored":  # the answer is lost
                request.close_connection = True
                return
            self.send(request, 200, headers=[("ETag", '"%s"' % hashlib.md5(body).hexdigest())])
        elif request.command == "GET" and dict(query).get("list-type") == "2":
            self.send_list(request, dict(query))
        elif request.command == "GET":
            self.send_object(request, name)
        else:
            self.send_error(request, 405, "MethodNotAllowed")

    def send_list(self, request, query):
        found = [n for n in self.names(query.get("prefix", "")) if n > query.get("start-after", "")]
        page = found[:min(int(query.get("max-keys", 1000)), getattr(self, "page", 1000))]
        body = "<?xml version='1.0' encoding='UTF-8'?>\n<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><IsTruncated>%s</IsTruncated>%s</ListBucketResult>" % (
            "true" if len(page) < len(found) else "false",
            "".join("<Contents><Key>%s</Key><Size>%d</Size></Contents>" % (escape(n), len(self.objects[n])) for n in page))
        self.send(request, 200, body.encode())

    def send_object(self, request, name):
        data, wanted = self.objects.get(name), request.headers.get("Range")
        if data is None:
            self.send_error(request, 404, "NoSuchKey")
        elif not wanted:
            self.send(request, 200, data)
        else:
            first, last = (int(n) for n in wanted.split("=")[1].split("-"))
            if first >= len(data):
                self.send_error(request, 416, "InvalidRange")
                return
            part = data[first:last + 1]
            self.send(request, 206, part, [("Content-Range", "bytes %d-%d/%d" % (first, first + len(part) - 1, len(data)))])
