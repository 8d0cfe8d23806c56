# SPDX-License-Identifier: Apache-2.0
# Failures of PostgreSQL: lost COMMIT replies, ended sessions, lost commits, poolers, too many connections.
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from behind import Behind, away, back, timed
from harness import Daemon, case, main, need_program, wait_until
from nodes import server
from pg import Server

REFUSED = 78
COMMIT = 12         # bytes of the COMMIT request
COMMITTED = 12 + 6  # bytes of the reply: CommandComplete and ReadyForQuery


@contextlib.contextmanager
def store():
    """The shared server. The schema is dropped at the end."""
    yield server()
    server().sql("DROP SCHEMA IF EXISTS jobsched CASCADE")


def added(d, spec):
    """Submits a job with a key and returns its id, or None if the store did not answer; the call can be repeated."""
    status, answer, _ = timed(d, "POST", "/v1/jobs", spec)
    assert status in (200, 201, 503, 504), (status, answer)
    return answer["id"] if status < 300 else None


@case
def a_connection_cut_at_any_byte_of_a_commit_neither_loses_nor_repeats_a_run():
    with Behind() as b:
        d, ledger = b.d, os.path.join(b.d.dir, "ledger")
        cuts, jobs, answers = [], {}, []
        b.proxy.cut_commits = lambda: cuts.pop() if cuts else None
        for at in range(COMMIT + COMMITTED + 1):
            spec = {"command": ["sh", "-c", "echo %d >>%s" % (at, ledger)], "key": "cut%d" % at, "retries": 3}
            cuts[:] = [at] * 2  # the submission and the next commit: a claim, an end or a renewal
            status, answer, _ = timed(d, "POST", "/v1/jobs", spec)
            answers.append(status)
            assert status in (201, 503, 504), (at, status, answer)
            wait_until("the connections were cut", 20, lambda: not cuts)
            wait_until("the store is back", 30, lambda: back(d))
            jobs[at] = wait_until("the job is stored", 30, lambda: added(d, spec))
            assert status != 201 or jobs[at] == answer["id"], (at, answer)
        for at, job in jobs.items():
            run = d.wait_final(job, 60)
            assert run["state"] == "succeeded" and run["attempt"] == 1, (at, run)
            assert len(d.runs(job)) == 1, (at, d.runs(job))
        with open(ledger) as f:
            assert sorted(map(int, f)) == sorted(jobs), "a job ran twice or not at all"
        assert len(d.runs()) == len(jobs)
        return "answers: " + ", ".join("%d times %d" % (answers.count(s), s) for s in sorted(set(answers)))


@case
def an_invalid_store_address_is_refused_without_printing_its_password():
    for place, words in (("ann:sesame@db/jobs?nonsense=1", 'invalid URI query parameter: "nonsense"'), ("ann:sesame@[::1/jobs", "IPv6"),
                         ("ann:sesame@db:one/jobs x=y%%", "")):
        with Daemon("store = postgresql://%s\n" % place) as d:
            code, said = d.run()
            assert code == REFUSED and words in said and "not a valid PostgreSQL connection string" in said, (place, code, said)
            assert "sesame" not in said, said


@case
def an_abandoned_transaction_is_ended_by_the_server():
    with Behind() as b:
        go_on = threading.Event()
        b.proxy.cut_commits = lambda: go_on.wait() and None
        timed(b.d, "POST", "/v1/jobs", {"command": ["true"], "key": "one"})
        idle = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        wait_until("a transaction is left open", 10, lambda: b.server.sql(idle) != [["0"]])
        wait_until("the server has ended it", 15, lambda: b.server.sql(idle) == [["0"]])
        with open(os.path.join(b.server.dir, "log")) as f:
            assert "idle-in-transaction timeout" in f.read()
        go_on.set()
        wait_until("the store is back", 30, lambda: back(b.d))
        assert b.d.wait_final(b.d.add(command=["true"], key="one")["id"])["attempt"] == 1
        assert len(b.d.runs()) == 1


@case
def a_writer_that_waits_for_a_lock_times_out_and_retries():
    with store() as s, Daemon("store = %s\n" % s.url) as d:
        d.start()
        locker = subprocess.Popen([*s.user, os.path.join(s.bin, "psql"), "-X", "-q", "-h", s.dir, "-U", "jobsched", "postgres", "-c",
                                   "BEGIN; LOCK TABLE jobsched.jobs; SELECT pg_sleep(6)"], cwd="/", stdout=subprocess.DEVNULL)
        try:
            wait_until("the table is locked", 10, lambda: s.sql("SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted "
                                                         "AND relation = 'jobsched.jobs'::regclass"))
            status, answer, took = timed(d, "POST", "/v1/jobs", {"command": ["true"], "key": "one"})
            assert status in (201, 503, 504), (status, answer)
        finally:
            assert locker.wait(30) == 0
        with open(os.path.join(s.dir, "log")) as f:
            assert "canceling statement due to lock timeout" in f.read()
        wait_until("the store is back", 30, lambda: back(d))
        assert d.wait_final(d.add(command=["true"], key="one")["id"])["attempt"] == 1
        return "answered %d after %.1f s" % (status, took)


@case
def a_server_that_lost_commits_is_refused_until_an_administrator_accepts_it():
    with Server() as s, Daemon("store = %s\n" % s.url) as d:
        d.start()
        d.stop()
        s.stop("fast")
        older = os.path.join(s.dir, "older")
        subprocess.run([*s.user, "cp", "-a", s.data, older], check=True)
        s.start()
        d.start()  # leads in a new term
        job = d.add(command=["true"])["id"]
        d.wait_final(job)
        s.stop("fast")
        shutil.rmtree(s.data)
        os.rename(older, s.data)
        s.start()
        assert d.ended(60) == REFUSED, d.said()
        assert "the store has gone back to term" in d.said() and "lost commits" in d.said()
        assert s.sql("SELECT count(*) FROM jobsched.jobs") == [["0"]], "the daemon wrote to the restored store"
        code, said = d.run()
        assert code == REFUSED and "gone back to term" in said and "remove '" in said, (code, said)
        os.unlink(said.rsplit("remove '", 1)[1].split("'")[0])
        d.start()
        assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"


class Pooler:
    """A temporary pgbouncer in front of a server, on a Unix socket."""

    def __init__(self, s, mode, more=""):
        need_program("pgbouncer")
        self.dir = tempfile.mkdtemp(prefix="jobsched-pb.", dir=s.dir)
        os.chmod(self.dir, 0o777)
        config = os.path.join(self.dir, "ini")
        with open(config, "w") as f:
            f.write("[databases]\npostgres = host=%s user=jobsched\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = 5432\n"
                    "auth_type = any\npool_mode = %s\n%s\n" % (s.dir, self.dir, mode, more))
        self.log = open(os.path.join(self.dir, "log"), "wb")
        self.process = subprocess.Popen([*s.user, shutil.which("pgbouncer"), config], cwd="/", stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        self.url = "postgresql://jobsched@/postgres?host=" + self.dir
        wait_until("pgbouncer listens", 20, lambda: os.path.exists(os.path.join(self.dir, ".s.PGSQL.5432")))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


@case
def a_transaction_pooler_is_refused_with_the_reason():
    for more in ("", "server_round_robin = 1"):
        with Pooler(server(), "transaction", more) as p, Daemon("store = %s\n" % p.url) as d:
            others = [subprocess.Popen(["psql", "-X", "-q", "-c", "SELECT pg_sleep(0.5)", p.url], stdout=subprocess.DEVNULL) for _ in range(4)]
            assert [o.wait(20) for o in others] == [0] * 4  # the pooler then has several server connections
            code, said = d.run()
            assert code == REFUSED and "pooler" in said and "session mode" in said, (more, code, said)


@case
def a_session_pooler_is_supported():
    with store() as s, Pooler(s, "session") as p, Daemon("store = %s\n" % p.url) as d:
        d.start()
        assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"
        p.process.kill()
        p.process.wait()
        wait_until("the store is unavailable", 20, lambda: away(d))
        os.unlink(os.path.join(p.dir, ".s.PGSQL.5432"))
        with Pooler(s, "session") as again:
            os.symlink(os.path.join(again.dir, ".s.PGSQL.5432"), os.path.join(p.dir, ".s.PGSQL.5432"))
            wait_until("the store is back", 30, lambda: back(d))
            assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"
            d.stop()


@case
def a_server_without_free_connections_is_reported_and_retried():
    with store() as s:
        s.sql("CREATE ROLE narrow LOGIN CONNECTION LIMIT 3; GRANT CREATE ON DATABASE postgres TO narrow")
        with Daemon("store = %s\n" % s.url.replace("jobsched@", "narrow@")) as d:
            code, said = d.run()
            assert code != 0 and "too many connections" in said, (code, said)
            s.sql("ALTER ROLE narrow CONNECTION LIMIT 5")
            d.start()
            s.sql("ALTER ROLE narrow CONNECTION LIMIT 0")
            s.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'narrow'")
            timed(d, "POST", "/v1/jobs", {"command": ["true"], "key": "one"})
            wait_until("the status gives the reason", 20, lambda: "too many connections" in str(away(d)))
            s.sql("ALTER ROLE narrow CONNECTION LIMIT 5")
            wait_until("the store is back", 30, lambda: back(d))
            assert d.wait_final(d.add(command=["true"], key="one")["id"])["state"] == "succeeded"


@case
def the_password_is_changed_without_a_restart():
    """Open sessions continue; new ones read the password file again. The steps of jobsched-cluster(7)."""
    with Server() as s:
        s.sql("CREATE ROLE app LOGIN PASSWORD 'first'; GRANT CREATE ON DATABASE postgres TO app")
        with open(os.path.join(s.data, "pg_hba.conf"), "r+") as f:
            rest = f.read()
            f.seek(0)
            f.write("local all app scram-sha-256\n" + rest)
        s.sql("SELECT pg_reload_conf()")
        with Daemon("store = %s\n" % s.url.replace("jobsched@", "app@")) as d:
            passwords = os.path.join(d.dir, "pgpass")

            def set_password(word):
                with open(os.open(passwords + ".new", os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                    f.write("*:*:*:app:%s\n" % word)
                os.rename(passwords + ".new", passwords)
            set_password("first")
            d.env["PGPASSFILE"] = passwords
            d.start()
            daemon = d.process.pid
            s.sql("ALTER ROLE app PASSWORD 'second'")
            assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"
            set_password("second")
            s.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
            wait_until("the store is back", 60, lambda: back(d))
            job = wait_until("a job is stored", 60, lambda: added(d, {"command": ["true"], "key": "after"}))
            assert d.wait_final(job, 60)["state"] == "succeeded"
            assert d.process.pid == daemon and d.process.poll() is None


main()
