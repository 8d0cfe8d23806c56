-- SPDX-License-Identifier: Apache-2.0
-- Statements and migrations specific to PostgreSQL. common.sql has those that both dialects share;
-- see generate.awk.
--
-- Query plans are made while the tables are empty and must stay right when they are large. Where
-- rows are found by their numbers, no other condition may look cheaper to the planner: 'state + 0'
-- and coalesce() match no index and promise no small number of rows, and OFFSET 0 keeps a subquery
-- from being pulled up, or from being read completely into a hash table.
-- Times are microseconds UTC, 0 means none. No extensions and no advisory locks are used, so that
-- compatible servers work too.

-- text setup
SET search_path = jobsched;
SET client_min_messages = warning;
SET timezone = 'UTC';
SET statement_timeout = '5s';
SET lock_timeout = '2s';
SET idle_in_transaction_session_timeout = '5s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 2;
SET tcp_user_timeout = 8000;
SET default_transaction_isolation = 'read committed';
SET synchronous_commit = on;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off

-- Shorter timeouts in milliseconds: for a statement, for a lock, and for an idle or unresponsive
-- peer.
-- text setup_bounds
SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
	set_config('idle_in_transaction_session_timeout', $3, false), set_config('tcp_user_timeout', $3, false)

-- text setup_reader
SET default_transaction_read_only = on

-- text setting
SELECT current_setting($1)

-- text process
SELECT pg_backend_pid()::text

-- text listen
LISTEN jobsched

-- text exists
SELECT CASE WHEN to_regclass('jobsched.meta') IS NULL THEN '0' ELSE '1' END

-- text create
CREATE SCHEMA IF NOT EXISTS jobsched

-- text hold_schema
SELECT value FROM jobsched.meta WHERE key = 'schema' FOR UPDATE

-- text schema_version
SELECT value FROM jobsched.meta WHERE key = 'schema'

-- text begin_write
BEGIN

-- The transaction of a notification holds a lock of the whole server, so its commit does not wait for the disk.
-- text notify
SELECT set_config('synchronous_commit', 'off', true), pg_notify('jobsched', '')

-- text begin_read
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- text commit
COMMIT

-- A role without pg_monitor does not see the state of a standby. pg_basebackup and pg_receivewal are not standbys.
-- text durability
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
	current_setting('synchronous_standby_names'),
	(SELECT count(*) FROM pg_stat_replication
	 WHERE state IS NULL OR (state IN ('streaming', 'catchup') AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')))

-- text rollback
ROLLBACK

-- text savepoint
SAVEPOINT op

-- text release
RELEASE SAVEPOINT op

-- text rollback_to
ROLLBACK TO SAVEPOINT op; RELEASE SAVEPOINT op

-- migration 1
CREATE TABLE meta (
	key TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
);
INSERT INTO meta (key, value) VALUES
	('schema', '1'),
	('store_id', replace(gen_random_uuid()::text, '-', ''));

CREATE TABLE writers (
	id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	batch BIGINT NOT NULL,
	at BIGINT NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000);

CREATE SEQUENCE jobs_id;
CREATE TABLE jobs (
	id BIGINT NOT NULL PRIMARY KEY,
	uid BIGINT NOT NULL,
	owner TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C",
	key TEXT COLLATE "C",
	content BIGINT, -- digest of what came with the key
	state BIGINT NOT NULL,
	reason TEXT,
	revision BIGINT NOT NULL,
	segment BIGINT NOT NULL,
	queue TEXT COLLATE "C" NOT NULL,
	priority BIGINT NOT NULL,
	boots BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	removed_at BIGINT NOT NULL DEFAULT 0,
	digest BIGINT NOT NULL,
	spec TEXT NOT NULL
) WITH (fillfactor = 90);
CREATE UNIQUE INDEX jobs_key ON jobs (uid, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX jobs_live_name ON jobs (uid, name)
	WHERE name IS NOT NULL AND state < JOB_FINISHED;
CREATE INDEX jobs_name ON jobs (name, uid, id DESC) WHERE name IS NOT NULL;
CREATE INDEX jobs_uid ON jobs (uid, id);
CREATE INDEX jobs_owner ON jobs (owner, id);
CREATE INDEX jobs_state ON jobs (state, id);
CREATE INDEX jobs_boots ON jobs (id) WHERE boots = 1 AND state = JOB_ACTIVE;
CREATE INDEX jobs_created ON jobs (created_at, id);

CREATE TABLE job_tags (
	key TEXT COLLATE "C" NOT NULL,
	value TEXT COLLATE "C" NOT NULL,
	job BIGINT NOT NULL,
	PRIMARY KEY (key, value, job)
);
CREATE INDEX job_tags_key ON job_tags (key, job);

CREATE TABLE job_revisions (
	job BIGINT NOT NULL,
	revision BIGINT NOT NULL,
	uid BIGINT NOT NULL,
	at BIGINT NOT NULL,
	what TEXT NOT NULL,
	spec TEXT NOT NULL,
	PRIMARY KEY (job, revision)
);

CREATE TABLE due (
	job BIGINT NOT NULL PRIMARY KEY,
	segment BIGINT NOT NULL,
	slot BIGINT NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX due_slot ON due (slot, segment);

CREATE SEQUENCE runs_id;
CREATE TABLE runs (
	id BIGINT NOT NULL PRIMARY KEY,
	job BIGINT NOT NULL,
	uid BIGINT NOT NULL,
	kind BIGINT NOT NULL,
	state BIGINT NOT NULL,
	priority BIGINT NOT NULL,
	slot BIGINT NOT NULL,
	slot_last BIGINT NOT NULL,
	slot_count BIGINT NOT NULL,
	due_at BIGINT NOT NULL,
	revision BIGINT NOT NULL,
	attempt BIGINT NOT NULL DEFAULT 0,
	lost BIGINT NOT NULL DEFAULT 0,
	fence BIGINT NOT NULL DEFAULT 0,
	cancel_asked BIGINT NOT NULL DEFAULT 0,
	exit_code BIGINT NOT NULL DEFAULT -1,
	term_signal BIGINT NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	claimed_at BIGINT NOT NULL DEFAULT 0,
	started_at BIGINT NOT NULL DEFAULT 0,
	ended_at BIGINT NOT NULL DEFAULT 0,
	dead_at BIGINT NOT NULL DEFAULT 0,
	queue TEXT COLLATE "C" NOT NULL,
	reason TEXT,
	node TEXT COLLATE "C",
	spawner TEXT COLLATE "C",
	CHECK ((ended_at = 0) = (state <= RUN_RUNNING))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNIQUE INDEX runs_slot_once ON runs (job, slot, kind);
CREATE INDEX runs_slot ON runs (slot, id);
CREATE INDEX runs_uid ON runs (uid, slot, id);
CREATE INDEX runs_state ON runs (state, slot, id) WHERE state <> RUN_SUCCEEDED;
CREATE INDEX runs_due ON runs (priority, due_at, id) WHERE state = RUN_QUEUED;
CREATE INDEX runs_open ON runs (job) WHERE ended_at = 0;

CREATE TABLE attempts (
	run BIGINT NOT NULL,
	fence BIGINT NOT NULL,
	number BIGINT NOT NULL,
	node TEXT COLLATE "C",
	spawner TEXT COLLATE "C",
	pid BIGINT NOT NULL,
	started_at BIGINT NOT NULL,
	ended_at BIGINT NOT NULL,
	outcome BIGINT NOT NULL,
	exit_code BIGINT NOT NULL,
	term_signal BIGINT NOT NULL,
	cpu_user BIGINT NOT NULL,
	cpu_system BIGINT NOT NULL,
	max_rss BIGINT NOT NULL,
	output_bytes BIGINT NOT NULL,
	output_dropped BIGINT NOT NULL,
	error TEXT,
	PRIMARY KEY (run, fence)
) WITH (fillfactor = 80);

CREATE TABLE outputs (
	run BIGINT NOT NULL,
	fence BIGINT NOT NULL,
	tail BYTEA NOT NULL,
	PRIMARY KEY (run, fence)
);

CREATE TABLE running_jobs (
	job BIGINT NOT NULL PRIMARY KEY,
	run BIGINT NOT NULL
);

CREATE TABLE nodes (
	id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	name TEXT COLLATE "C" NOT NULL,
	spawner TEXT COLLATE "C" NOT NULL,
	host TEXT NOT NULL,
	opened_at BIGINT NOT NULL,
	alive_until BIGINT NOT NULL,
	closed_at BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX nodes_name ON nodes (name);

CREATE TABLE boots (
	node TEXT COLLATE "C" NOT NULL,
	boot TEXT COLLATE "C" NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (node, boot)
);

CREATE TABLE leases (
	name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	holder TEXT COLLATE "C" NOT NULL,
	term BIGINT NOT NULL,
	until BIGINT NOT NULL
);

CREATE TABLE segments (
	segment BIGINT NOT NULL PRIMARY KEY,
	holder TEXT COLLATE "C" NOT NULL,
	term BIGINT NOT NULL
);

CREATE TABLE events (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at BIGINT NOT NULL,
	uid BIGINT NOT NULL,
	what TEXT NOT NULL,
	job BIGINT NOT NULL,
	run BIGINT NOT NULL,
	node TEXT,
	detail TEXT
);
CREATE INDEX events_job ON events (job, id);

CREATE TABLE counters (
	node TEXT COLLATE "C" NOT NULL,
	what BIGINT NOT NULL,
	state BIGINT NOT NULL,
	queue TEXT COLLATE "C" NOT NULL,
	n BIGINT NOT NULL,
	PRIMARY KEY (what, state, queue, node)
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000);

-- The numbers of a JSON array as an SQL array. It is evaluated once; each element is an index
-- lookup.
-- define ids = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(:set) AS given(value)))

-- Makes the set the outer side of the join, independent of the planner's size estimates.
-- define each_run = CROSS JOIN LATERAL (SELECT 1 FROM runs AS found WHERE found.id = given.run OFFSET 0) AS sure OFFSET 0

-- define each_job = CROSS JOIN LATERAL (SELECT 1 FROM jobs AS found WHERE found.id = given.job OFFSET 0) AS sure OFFSET 0

-- migration 2
UPDATE meta SET value = '2' WHERE key = 'schema';

-- The start policy of a run (core/job/policy.h), what it waits for, and the history of its
-- attempts.
ALTER TABLE runs
	ADD COLUMN overlap BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN overlap_waiting BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN places BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN deadline BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN expires BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN gated BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN notifies BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN forced BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN hold BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN failures BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN first_start BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN params TEXT; -- JSON, of a triggered run

-- A lane is the waiting runs of one queue, owner and priority. Runs that wait for a run of their
-- own job are on hold, outside the lane.
DROP INDEX runs_due;
CREATE INDEX runs_due ON runs (queue, uid, priority, due_at, id) WHERE state = RUN_QUEUED AND hold = 0;
CREATE INDEX runs_held ON runs (hold, job, slot, id) WHERE state = RUN_QUEUED AND hold <> 0;
-- These are few: runs that were released from a hold, postponed, or queued for a retry.
CREATE INDEX runs_released ON runs (job) WHERE state = RUN_QUEUED AND hold = 0 AND reason IS NOT NULL;
CREATE INDEX runs_dead ON runs (dead_at, id) WHERE dead_at <> 0;
CREATE INDEX jobs_ended ON jobs (updated_at, id) WHERE state >= JOB_FINISHED;
CREATE INDEX job_tags_job ON job_tags (job);
CREATE INDEX attempts_kept ON attempts (run, fence) WHERE output_bytes > output_dropped;

-- Claimed and running runs are counted per owner and queue (COUNT_ACTIVE).
INSERT INTO counters (node, what, state, queue, n)
SELECT '', 3, uid, queue, count(*) FROM runs WHERE state IN (RUN_CLAIMED, RUN_RUNNING) GROUP BY uid, queue;

-- Overlap permits. A job whose runs may not overlap has one, other jobs have as many as runs may go
-- on at a time. A run keeps its permit from its first start to its final state. The column 'place'
-- is the number of the permit.
DROP TABLE running_jobs;
CREATE TABLE running_jobs (
	job BIGINT NOT NULL,
	place BIGINT NOT NULL,
	run BIGINT NOT NULL,
	PRIMARY KEY (job, place)
);

-- A pause keeps all jobs or those of a queue, an owner or a tag from starting; for the jobs of one
-- uid, or of all (-1). A freeze has scope 'freeze' and may exempt a tag.
CREATE TABLE pauses (
	scope TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	uid BIGINT NOT NULL,
	by_uid BIGINT NOT NULL,
	by_name TEXT NOT NULL,
	reason TEXT,
	at BIGINT NOT NULL,
	until BIGINT NOT NULL, -- 0: until somebody ends it
	spared TEXT COLLATE "C" NOT NULL, -- KEY=VALUE, or empty
	PRIMARY KEY (scope, key, uid)
);
CREATE TABLE job_pauses (
	job BIGINT NOT NULL PRIMARY KEY,
	by_uid BIGINT NOT NULL,
	by_name TEXT NOT NULL,
	at BIGINT NOT NULL,
	until BIGINT NOT NULL -- 0: until somebody resumes it
);
CREATE INDEX job_pauses_until ON job_pauses (until) WHERE until <> 0;

CREATE INDEX pauses_until ON pauses (until) WHERE until <> 0;
CREATE INDEX pauses_uid ON pauses (uid);
-- At boot, paused jobs are found too: their runs wait.
DROP INDEX jobs_boots;
CREATE INDEX jobs_boots ON jobs (id) WHERE boots = 1 AND state IN (JOB_ACTIVE, JOB_PAUSED);

-- Limits of queues ('queue', its name) and owners ('owner', the uid); 0 is no limit. A queue must
-- exist before a job can use it.
CREATE TABLE limits (
	scope TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	running BIGINT NOT NULL,
	weight BIGINT NOT NULL,
	rate_n BIGINT NOT NULL,
	rate_per BIGINT NOT NULL,
	rate_burst BIGINT NOT NULL,
	PRIMARY KEY (scope, key)
);
INSERT INTO limits (scope, key, running, weight, rate_n, rate_per, rate_burst) VALUES ('queue', 'default', 0, 100, 0, 0, 0);
-- The token bucket of a rate is stored as one point in time (policy_rate_take); scope 'queue',
-- 'owner' or 'job'.
CREATE TABLE buckets (
	scope TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	full_at BIGINT NOT NULL,
	PRIMARY KEY (scope, key)
);

CREATE TABLE templates (
	uid BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	owner TEXT NOT NULL,
	revision BIGINT NOT NULL,
	params TEXT NOT NULL, -- JSON: what must and may be given
	spec TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (uid, name)
);

-- Digest of the submitted definition, as long as the job is unchanged. Submitting the same
-- definition again changes nothing.
ALTER TABLE jobs ADD COLUMN asked BIGINT;
-- The name of the user who made a revision, and the revision whose definition it restored (undo);
-- 0: none.
ALTER TABLE job_revisions ADD COLUMN who TEXT;
ALTER TABLE job_revisions ADD COLUMN origin BIGINT NOT NULL DEFAULT 0;

-- Notices, one row per channel.
CREATE TABLE notices (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	job BIGINT NOT NULL,
	run BIGINT NOT NULL,
	uid BIGINT NOT NULL,
	what TEXT NOT NULL,
	channel TEXT NOT NULL,
	state BIGINT NOT NULL, -- NOTICE_…
	tries BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	due_at BIGINT NOT NULL,
	done_at BIGINT NOT NULL,
	node TEXT, -- the engine that is sending it
	detail TEXT, -- JSON
	error TEXT
);
CREATE INDEX notices_due ON notices (due_at) WHERE state = NOTICE_WAITING;
CREATE INDEX notices_job ON notices (job, id);
CREATE INDEX notices_uid ON notices (uid, id);
CREATE INDEX notices_failed ON notices (id) WHERE state = NOTICE_FAILED;
CREATE INDEX notices_done ON notices (done_at) WHERE state <> NOTICE_WAITING;
CREATE UNIQUE INDEX notices_long ON notices (run, channel) WHERE what = 'long'; -- said once of a run
-- The health of jobs that notify. A change of state and an unusually long run are detected against
-- this row.
CREATE TABLE job_health (
	job BIGINT NOT NULL PRIMARY KEY,
	bad BIGINT NOT NULL, -- HEALTH_…
	since BIGINT NOT NULL,
	slot BIGINT NOT NULL, -- the newest that was bad
	last_success BIGINT NOT NULL, -- run, 0: none
	typical BIGINT NOT NULL -- duration of successful runs, a moving mean; 0: unknown
);

ALTER TABLE events ADD COLUMN who TEXT;
ALTER TABLE events ADD COLUMN origin TEXT;
ALTER TABLE events ADD COLUMN object TEXT;
ALTER TABLE events ADD COLUMN result TEXT;
-- The user who may see the event besides administrators: the owner of its job, or else the user who
-- caused it.
ALTER TABLE events ADD COLUMN owner BIGINT NOT NULL DEFAULT -1;
CREATE INDEX events_owner ON events (owner, id);

-- migration 3
UPDATE meta SET value = '3' WHERE key = 'schema';

-- All users that ever owned a job. The columns 'uid' of other tables hold the owner's number: see
-- core/job/owner.h.
CREATE TABLE owners (
	number BIGINT PRIMARY KEY,
	uid BIGINT NOT NULL,
	name TEXT NOT NULL,
	since BIGINT NOT NULL,
	UNIQUE (uid, name)
);
CREATE INDEX owners_name ON owners (name, since);
INSERT INTO owners (number, uid, name, since)
SELECT uid, uid, min(owner), min(created_at) FROM jobs GROUP BY uid;

-- Bytes counted by the control group of the run; -1: unknown.
ALTER TABLE attempts ADD COLUMN io_read BIGINT NOT NULL DEFAULT -1;
ALTER TABLE attempts ADD COLUMN io_written BIGINT NOT NULL DEFAULT -1;

-- Kept output is counted per owner (COUNT_OUTPUT).
DELETE FROM counters WHERE what = 4;
INSERT INTO counters (node, what, state, queue, n)
SELECT '', 4, runs.uid, '', sum(attempts.output_bytes - attempts.output_dropped)
FROM attempts JOIN runs ON runs.id = attempts.run WHERE attempts.output_bytes > attempts.output_dropped GROUP BY runs.uid;

-- migration 4
UPDATE meta SET value = '4' WHERE key = 'schema';

-- Whether the spawner ends non-overlapping runs when the lease is over (guarded), and the
-- difference between the clocks of node and store.
ALTER TABLE nodes ADD COLUMN guarded BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN skew BIGINT NOT NULL DEFAULT 0;
CREATE INDEX nodes_open ON nodes (id) WHERE closed_at = 0;

-- Commands of administrators to a node, by its name: start no new runs; give up the leader lease of
-- this term.
CREATE TABLE node_orders (
	name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	draining BIGINT NOT NULL,
	resign_term BIGINT NOT NULL
);

INSERT INTO leases (name, holder, term, until) VALUES ('leader', '', 0, 0);
INSERT INTO meta (key, value) VALUES ('events', '');

-- Runs with a requested cancellation, by the node that runs them.
CREATE INDEX runs_to_end ON runs (node) WHERE cancel_asked = 1 AND ended_at = 0;

-- migration 5
UPDATE meta SET value = '5' WHERE key = 'schema';

-- The labels of a node as in struct op_claim, and whether the node may never lead.
ALTER TABLE nodes ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN barred BIGINT NOT NULL DEFAULT 0;

-- The boot ID of the machine that the node runs on; '': unknown.
ALTER TABLE nodes ADD COLUMN boot TEXT NOT NULL DEFAULT '';

-- When the leader last completed its work while other nodes were alive.
INSERT INTO meta (key, value) VALUES ('led_at', '0');

-- Requests of a node for output that another node keeps, and the parts that are ready to be read.
-- The tables are unlogged: losing them in a server crash does no harm, and nothing is written to
-- the WAL.
CREATE UNLOGGED TABLE relays (
	id BIGINT NOT NULL PRIMARY KEY,
	reader TEXT COLLATE "C" NOT NULL, -- engines
	holder TEXT COLLATE "C" NOT NULL,
	run BIGINT NOT NULL,
	attempt BIGINT NOT NULL,
	start BIGINT NOT NULL,
	tail BIGINT NOT NULL,
	follow BIGINT NOT NULL,
	taken BIGINT NOT NULL,
	until BIGINT NOT NULL
);
CREATE INDEX relays_reader ON relays (reader);
CREATE INDEX relays_holder ON relays (holder);
CREATE UNLOGGED TABLE relay_parts (
	relay BIGINT NOT NULL,
	number BIGINT NOT NULL,
	at BIGINT NOT NULL,
	total BIGINT NOT NULL,
	dropped BIGINT NOT NULL,
	last BIGINT NOT NULL,
	note TEXT,
	data TEXT NOT NULL, -- base64
	PRIMARY KEY (relay, number)
);

-- migration 6
UPDATE meta SET value = '6' WHERE key = 'schema';

-- Whether the leader declared the node lost; 0: the node closed its row itself.
ALTER TABLE nodes ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;

-- migration 7
UPDATE meta SET value = '7' WHERE key = 'schema';

-- Waiting notices are read one owner at a time.
DROP INDEX notices_due;
CREATE INDEX notices_owner ON notices (uid, due_at, id) WHERE state = NOTICE_WAITING;

-- migration 8
UPDATE meta SET value = '8' WHERE key = 'schema';

-- Finds cancelled jobs that an administrator had paused, when a new job is submitted with their
-- name.
CREATE INDEX jobs_cancelled_name ON jobs (uid, name) WHERE name IS NOT NULL AND state = JOB_CANCELLED;

-- migration 9
UPDATE meta SET value = '9' WHERE key = 'schema';

-- 1: the slot passed before it could be planned, and the job catches up on all slots.
ALTER TABLE runs ADD COLUMN caught_up BIGINT NOT NULL DEFAULT 0;

-- Queued runs by the last moment at which they may start (claim_last_start, core/decide/claim.c).
CREATE INDEX runs_last_start ON runs ((slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END))
WHERE state = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0));

-- Pauses that are over, kept until every slot before their end is planned and decided. 'job' is 0
-- for a scope.
CREATE TABLE pauses_past (
	job BIGINT NOT NULL,
	scope TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	uid BIGINT NOT NULL,
	at BIGINT NOT NULL,
	until BIGINT NOT NULL,
	spared TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (job, scope, key, uid, at)
);

-- The end of the run lease, the time of the last renewal, and the ID of the machine that the node
-- runs on.
ALTER TABLE nodes ADD COLUMN runs_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN renewed_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN machine TEXT NOT NULL DEFAULT '';
-- The runs that the spawner held when the node was closed, a JSON array; NULL: the node is open, or
-- the runs are unknown.
ALTER TABLE nodes ADD COLUMN left_runs TEXT;

-- migration 10
UPDATE meta SET value = '10' WHERE key = 'schema';

-- Bytes that jobs, revisions, templates, runs and kept output tails take, counted per owner
-- (COUNT_STORE).
DELETE FROM counters WHERE what = 6;
INSERT INTO counters (node, what, state, queue, n)
SELECT '', 6, sized.uid, '', sum(sized.size) FROM (
	SELECT uid, 1000 + octet_length(spec) AS size FROM jobs
	UNION ALL SELECT jobs.uid, 200 + octet_length(job_revisions.spec) FROM job_revisions JOIN jobs ON jobs.id = job_revisions.job
	UNION ALL SELECT uid, 200 + octet_length(spec) + octet_length(params) FROM templates
	UNION ALL SELECT uid, 400 + coalesce(octet_length(params), 0) FROM runs
	UNION ALL SELECT runs.uid, 50 + octet_length(tail) FROM outputs JOIN runs ON runs.id = outputs.run) AS sized
GROUP BY sized.uid;

-- Finds removed jobs of an owner that is over its budget.
CREATE INDEX jobs_removed ON jobs (uid, id) WHERE state = JOB_REMOVED;

-- migration 11
UPDATE meta SET value = '11' WHERE key = 'schema';

-- A pause that was set in advance (later = 1) covers slots from 'at' on. The job of such a row is
-- active until 'at'; then it is paused with the reason of the row, and 'later' is set to 0.
ALTER TABLE pauses ADD COLUMN later BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_pauses ADD COLUMN later BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_pauses ADD COLUMN reason TEXT;
CREATE INDEX job_pauses_later ON job_pauses (at) WHERE later = 1;

-- migration 12
UPDATE meta SET value = '12' WHERE key = 'schema';

-- The lists of jobs by owner and states, by name and by queue; of runs by queue; of events by kind and run. Most jobs are in
-- the queue 'default', and most events are submissions: a list of these uses the index without the column.
DROP INDEX jobs_uid;
CREATE INDEX jobs_uid_state ON jobs (uid, state, id);
CREATE INDEX jobs_by_name ON jobs (name, id);
CREATE INDEX jobs_queue ON jobs (queue, id) WHERE queue <> 'default';
CREATE INDEX runs_queue ON runs (queue, slot, id) WHERE queue <> 'default';
CREATE INDEX events_what ON events (what, id) WHERE what <> 'job.add';
CREATE INDEX events_run ON events (run, id) WHERE run <> 0;
CREATE INDEX events_owner_what ON events (owner, what, id) WHERE what <> 'job.add';
-- The first queued run of a job, for the list of jobs by their next run.
DROP INDEX runs_open;
CREATE INDEX runs_open ON runs (job, slot) WHERE ended_at = 0;
DROP INDEX due_slot;
CREATE INDEX due_slot ON due (slot, segment, job);

-- migration 13
UPDATE meta SET value = '13' WHERE key = 'schema';

-- The name of the set of definitions that the job was applied from ('jobctl apply'); NULL: none.
ALTER TABLE jobs ADD COLUMN applied_set TEXT;
CREATE INDEX jobs_applied ON jobs (uid, applied_set, id)
	WHERE applied_set IS NOT NULL AND state < JOB_CANCELLED;

-- migration 14
UPDATE meta SET value = '14' WHERE key = 'schema';

-- Tokens and sessions of the API over TCP. 'hash' is the SHA-256 of the secret. 'tokens' in meta
-- grows with each change; nodes read the table again when it has changed.
CREATE TABLE tokens (
	id TEXT PRIMARY KEY,
	kind BIGINT NOT NULL,
	name TEXT,
	owner BIGINT NOT NULL,
	owner_name TEXT NOT NULL,
	role BIGINT NOT NULL,
	everyone BIGINT NOT NULL,
	scope TEXT,
	hash TEXT NOT NULL,
	parent TEXT,
	created_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX tokens_name ON tokens (owner, name) WHERE kind = 0;
CREATE INDEX tokens_expiry ON tokens (expires_at) WHERE expires_at > 0;

-- migration 15
UPDATE meta SET value = '15' WHERE key = 'schema';

-- For metrics: when runs of the job last succeeded, failed and were missed (0: never), and how long
-- the last run took.
ALTER TABLE job_health ADD COLUMN success_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_health ADD COLUMN failure_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_health ADD COLUMN missed_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE job_health ADD COLUMN took BIGINT NOT NULL DEFAULT 0;
DELETE FROM counters WHERE what = 8;
INSERT INTO counters (node, what, state, queue, n) SELECT '', 8, 0, '', count(*) FROM runs WHERE dead_at <> 0 HAVING count(*) > 0;

-- migration 16
UPDATE meta SET value = '16' WHERE key = 'schema';

-- Runs that a node has started or ended, at most one row per 100 ms and node; 'runs' is a
-- JSON array of their ids. The event streams of the other nodes read them. Old rows are deleted.
CREATE TABLE run_moves (
	id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	node TEXT NOT NULL,
	runs TEXT NOT NULL
);

-- The last progress that the command of a run reported; 'fence' names the attempt.
CREATE TABLE run_progress (
	run BIGINT PRIMARY KEY,
	fence BIGINT NOT NULL,
	percent BIGINT NOT NULL, -- -1: not given
	text TEXT NOT NULL,
	at BIGINT NOT NULL
);

-- migration 17
UPDATE meta SET value = '17' WHERE key = 'schema';

-- The jobs that a job runs after: 'parent' is the name or number of a job of the same owner, 'link'
-- the text of the definition, 'mode' an enum chain_mode.
CREATE TABLE chains (
	child BIGINT NOT NULL,
	link TEXT NOT NULL,
	uid BIGINT NOT NULL,
	parent TEXT NOT NULL,
	mode BIGINT NOT NULL,
	PRIMARY KEY (child, link)
);
CREATE INDEX chains_parent ON chains (uid, parent, child);

-- migration 18
UPDATE meta SET value = '18' WHERE key = 'schema';

-- The results of a run: those of its last attempt (core/job/result.h). 'uid' and 'slot' are those of the run.
CREATE TABLE results (
	run BIGINT NOT NULL,
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	uid BIGINT NOT NULL,
	slot BIGINT NOT NULL,
	PRIMARY KEY (run, key)
);
CREATE INDEX results_value ON results (key, value, slot, run);

-- migration 19
UPDATE meta SET value = '19' WHERE key = 'schema';

-- The content of the directory that the attempts of a run share (--state-size), at the end of the
-- attempt 'fence': an archive, as base64 in parts. The last part is marked; without it the rest is being written.
CREATE TABLE run_states (
	run BIGINT NOT NULL,
	fence BIGINT NOT NULL,
	part BIGINT NOT NULL,
	last BIGINT NOT NULL,
	uid BIGINT NOT NULL,
	data TEXT NOT NULL,
	PRIMARY KEY (run, fence, part)
);

-- migration 20
UPDATE meta SET value = '20' WHERE key = 'schema';

-- Nodes of versions before this one write 1. They read events by number, in the order of their commits.
ALTER TABLE nodes ADD COLUMN protocol BIGINT NOT NULL DEFAULT 1;

-- The bytes that a row counts towards its owner's quota, as in owner_quota.c.
-- define job_size = (1000 + octet_length(spec))::bigint AS size

-- define revision_size = (200 + octet_length(spec))::bigint AS size

-- define template_size = (200 + octet_length(spec) + octet_length(params))::bigint AS size

-- define run_size = (400 + coalesce(octet_length(params), 0))::bigint AS size

-- define tail_size = (50 + octet_length(tail))::bigint AS size

-- The numbers of a JSON array as rows, each of which is looked up in an index.
-- define wanted_jobs = (SELECT DISTINCT value::bigint AS job FROM jsonb_array_elements_text(:set) AS given(value)) AS wanted

-- define state_size = (100 + octet_length(data))::bigint AS size

-- define result_size = (100 + octet_length(key) + octet_length(value))::bigint AS size

-- define boot_rows = jobs

-- define applied_rows = jobs

-- The clock of leases is the server's. It is read for each row, after the lock of the row was
-- acquired.
-- define clock = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- The first queued run of the job of a run, and whether a job has a queued run. The last run of the job of a run, as in
-- jobs_get, and whether a job has one.
-- define first_queued = (SELECT mine.id FROM runs AS mine
--	WHERE mine.job = runs.job AND mine.ended_at = 0 AND mine.state = RUN_QUEUED ORDER BY mine.slot, mine.id LIMIT 1)

-- define has_queued = EXISTS (SELECT 1 FROM runs AS mine
--	WHERE mine.job = jobs.id AND mine.ended_at = 0 AND mine.state = RUN_QUEUED OFFSET 0)

-- define has_slot = EXISTS (SELECT 1 FROM due WHERE due.job = jobs.id AND due.slot < 9223372036854775807 OFFSET 0)

-- define last_run = (SELECT newest.id FROM runs AS newest
--	WHERE newest.job = runs.job AND newest.slot >= runs.slot AND newest.state <> RUN_QUEUED ORDER BY newest.slot DESC, newest.kind DESC LIMIT 1)

-- define has_run = EXISTS (SELECT 1 FROM runs AS newest WHERE newest.job = jobs.id AND newest.state <> RUN_QUEUED OFFSET 0)

-- Whether the segment of a row of 'due' is in the mask :segments.
-- define in_segments = (:segments >> due.segment::int) & 1 = 1

-- ======== the store itself ========

-- A commit that is still in progress in the lost session holds this row lock. The statement waits
-- for its outcome.
-- query writer_get(id text) -> batch int
SELECT batch FROM writers WHERE id = :id FOR UPDATE

-- The rows are locked in ascending order, as writers_wait does.
-- query writer_close(id text, before int)
DELETE FROM writers WHERE id = ANY (ARRAY(SELECT id FROM writers WHERE id = :id OR at < :before ORDER BY id FOR UPDATE))

-- query counters_add(node text, set json)
INSERT INTO counters (node, what, state, queue, n)
SELECT :node, what, state, queue, n
FROM jsonb_to_recordset(:set) AS given(what bigint, state bigint, queue text, n bigint)
ON CONFLICT (what, state, queue, node) DO UPDATE SET n = counters.n + excluded.n

-- query counters_sum(what int) -> state int, n int
SELECT state, sum(n)::bigint AS n FROM counters WHERE what = :what GROUP BY state

-- query counter_get(what int, state int) -> n int
SELECT coalesce(sum(n), 0)::bigint AS n FROM counters WHERE what = :what AND state = :state

-- Settings that make a commit unsafe against a crash of the machine.
-- query unsafe_settings() -> name text
SELECT name FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name

-- ======== owners ========

-- query owner_add(uid int, name text, now int)
INSERT INTO owners (number, uid, name, since)
SELECT :uid::bigint + 4294967296 * (SELECT count(*) FROM owners WHERE uid = :uid), :uid::bigint, :name::text, :now::bigint
ON CONFLICT DO NOTHING

-- ======== jobs ========

-- query job_ids(n int) -> id int
SELECT nextval('jobs_id') AS id FROM generate_series(1, :n)

-- query jobs_insert(set json) -> id int
INSERT INTO jobs (id, uid, owner, name, key, content, asked, state, revision, segment, queue, priority,
	boots, created_at, updated_at, digest, spec)
SELECT id, uid, owner, name, key, content, asked, state, 1, segment, queue, priority, boots, now, now, digest, spec
FROM jsonb_to_recordset(:set) AS given(id bigint, uid bigint, owner text, name text, key text,
	content bigint, asked bigint, segment bigint, queue text, priority bigint, boots bigint, now bigint, digest bigint,
	spec text, state bigint)
ON CONFLICT DO NOTHING
RETURNING id

-- The jobs of an owner with these names, without cancelled and removed ones.
-- query jobs_named(set json, uid int) -> id int, uid int, owner text, name text, state int, revision int,
--	created_at int, updated_at int, asked int, applied_set text, spec text
SELECT found.id, found.uid, found.owner, found.name, found.state, found.revision, found.created_at, found.updated_at,
	coalesce(found.asked, 0) AS asked, found.applied_set, found.spec
FROM jsonb_array_elements_text(:set) AS wanted(value)
	CROSS JOIN LATERAL (SELECT * FROM jobs
		WHERE jobs.name = wanted.value AND jobs.uid = :uid AND jobs.state < JOB_CANCELLED OFFSET 0) AS found
ORDER BY found.id

-- query applied_put(set json, applied_set text)
UPDATE jobs SET applied_set = :applied_set WHERE id = {ids}

-- query jobs_insert_new(set json)
INSERT INTO jobs (id, uid, owner, name, key, content, asked, state, revision, segment, queue, priority,
	boots, created_at, updated_at, digest, spec)
SELECT id, uid, owner, name, key, content, asked, state, 1, segment, queue, priority, boots, now, now, digest, spec
FROM jsonb_to_recordset(:set) AS given(id bigint, uid bigint, owner text, name text, key text,
	content bigint, asked bigint, segment bigint, queue text, priority bigint, boots bigint, now bigint, digest bigint,
	spec text, state bigint)

-- Which of the given names and keys are taken.
-- query jobs_taken(set json) -> place int
SELECT given.id AS place FROM jsonb_to_recordset(:set) AS given(id bigint, uid bigint, name text, key text)
WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.uid = given.uid AND jobs.name = given.name AND jobs.state < JOB_FINISHED OFFSET 0)
	OR EXISTS (SELECT 1 FROM jobs WHERE jobs.uid = given.uid AND jobs.key = given.key OFFSET 0)

-- query owners_lock(owners json, jobs json)
SELECT FROM owners
WHERE number = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(:owners) AS given(value)
	UNION SELECT uid FROM jobs WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(:jobs) AS given(value)))))
ORDER BY number FOR NO KEY UPDATE

-- query tags_insert(set json)
INSERT INTO job_tags (key, value, job)
SELECT key, value, job FROM jsonb_to_recordset(:set) AS given(key text, value text, job bigint)
ON CONFLICT DO NOTHING

-- query names_paused(set json, now int) -> place int, job int, uid int, by_uid int, by_name text, at int, until int,
--	reason text, later int
SELECT given.id AS place, held.id AS job, held.uid AS uid, pause.by_uid AS by_uid, pause.by_name AS by_name,
	pause.at AS at, pause.until AS until, coalesce(pause.reason, held.reason) AS reason, pause.later AS later
FROM jsonb_to_recordset(:set) AS given(id bigint, uid bigint, name text)
	CROSS JOIN LATERAL (SELECT id, uid, reason FROM jobs
		WHERE jobs.uid = given.uid AND jobs.name = given.name AND jobs.state = JOB_CANCELLED OFFSET 0) AS held
	CROSS JOIN LATERAL (SELECT by_uid, by_name, at, until, reason, later FROM job_pauses
		WHERE job_pauses.job = held.id OFFSET 0) AS pause
WHERE pause.until = 0 OR pause.until > :now

-- query job_lock(id int, uid int) -> uid int, name text, state int, queue text
SELECT uid, name, state, queue FROM jobs
WHERE id = :id AND (:uid < 0 OR uid = :uid) AND state <> JOB_REMOVED
FOR UPDATE

-- query jobs_suspend(set json, was int, now int) -> id int, uid int, queue text, name text, reason text
UPDATE jobs SET state = JOB_SUSPENDED, updated_at = :now, reason = given.reason
FROM (SELECT given.* FROM jsonb_to_recordset(:set) AS given(job bigint, reason text) {each_job}) AS given
WHERE jobs.id = given.job AND coalesce(jobs.state = :was, false)
RETURNING id, uid, queue, name, jobs.reason

-- query jobs_idle(set json) -> id int
SELECT id FROM jobs
WHERE id = {ids} AND state + 0 = JOB_ACTIVE
	AND NOT EXISTS (SELECT 1 FROM due WHERE due.job = jobs.id OFFSET 0)
ORDER BY id FOR NO KEY UPDATE

-- query jobs_finish(set json, now int) -> id int, uid int, queue text
UPDATE jobs SET state = JOB_FINISHED, updated_at = :now
WHERE id = {ids} AND state + 0 = JOB_ACTIVE
	AND NOT EXISTS (SELECT 1 FROM due WHERE due.job = jobs.id OFFSET 0)
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.job = jobs.id AND runs.ended_at = 0 OFFSET 0)
RETURNING id, uid, queue

-- ======== the schedule ========

-- query due_crowds(set json, n int) -> slot int, jobs int
SELECT given.value::bigint AS slot, (SELECT count(*) FROM (SELECT 1 FROM due WHERE slot = given.value::bigint LIMIT :n) AS same) AS jobs
FROM jsonb_array_elements_text(:set) AS given(value)

-- query due_insert(set json)
INSERT INTO due (job, segment, slot)
SELECT job, segment, slot
FROM jsonb_to_recordset(:set) AS given(job bigint, segment bigint, slot bigint)

-- query due_take(since int, until int, n int, segments int) -> job int, slot int
SELECT first.job, first.slot FROM (SELECT due.job, due.slot FROM due
	WHERE due.slot > :since AND due.slot <= :until AND {in_segments} ORDER BY due.slot OFFSET 0) AS first
	LEFT JOIN LATERAL (SELECT jobs.id FROM jobs WHERE jobs.id = first.job FOR NO KEY UPDATE SKIP LOCKED) AS held ON true
WHERE held.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = first.job OFFSET 0)
ORDER BY first.slot LIMIT :n

-- Read after the jobs are locked. 'due' is read again, because due_take may have seen an older row.
-- query due_jobs(set json) -> id int, uid int, revision int, priority int, queue text, name text, owner text, spec text,
--	digest int, created_at int, slot int
SELECT jobs.id, jobs.uid, jobs.revision, jobs.priority, jobs.queue, jobs.name, jobs.owner, jobs.spec, jobs.digest,
	jobs.created_at, due.slot
FROM jsonb_array_elements_text(:set) WITH ORDINALITY AS wanted(value, place) JOIN jobs ON jobs.id = wanted.value::bigint
	JOIN due ON due.job = jobs.id
ORDER BY wanted.place

-- Like due_take, for the slots after :since and then for the overdue ones. Stores the jobs in a setting of the transaction,
-- where due_held reads them.
-- define free_jobs = LEFT JOIN LATERAL (SELECT jobs.id FROM jobs WHERE jobs.id = first.job FOR NO KEY UPDATE SKIP LOCKED) AS held ON true
--	WHERE held.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = first.job OFFSET 0)

-- query due_hold(since int, until int, n int, current int, segments int) -> stored int
WITH fresh AS MATERIALIZED (SELECT first.job, first.slot FROM (SELECT due.job, due.slot FROM due
		WHERE due.slot > :since AND due.slot <= :until AND {in_segments} ORDER BY due.slot OFFSET 0) AS first
	{free_jobs} ORDER BY first.slot LIMIT :current),
late AS MATERIALIZED (SELECT first.job, first.slot FROM (SELECT due.job, due.slot FROM due
		WHERE due.slot > 0 AND due.slot <= :since AND {in_segments} ORDER BY due.slot OFFSET 0) AS first
	{free_jobs} ORDER BY first.slot LIMIT :n - (SELECT count(*) FROM fresh))
SELECT length(set_config('jobsched.due', coalesce((SELECT jsonb_agg(job ORDER BY late, slot, job) FROM
	(SELECT job, slot, 0 AS late FROM fresh UNION ALL SELECT job, slot, 1 FROM late) AS held), '[]')::text, true))::bigint AS stored

-- query due_held(until int) -> id int, slot int, uid int, revision int, priority int, queue text, name text, owner text, spec text,
--	digest int, created_at int, slot_now int
SELECT jobs.id, due.slot, jobs.uid, jobs.revision, jobs.priority, jobs.queue, jobs.name, jobs.owner, jobs.spec, jobs.digest,
	jobs.created_at, due.slot AS slot_now
FROM jsonb_array_elements_text(current_setting('jobsched.due', true)::jsonb) WITH ORDINALITY AS wanted(value, place)
	JOIN jobs ON jobs.id = wanted.value::bigint JOIN due ON due.job = jobs.id
WHERE due.slot <= :until
ORDER BY wanted.place

-- query due_move(set json)
UPDATE due SET slot = given.slot
FROM jsonb_to_recordset(:set) AS given(job bigint, slot bigint)
WHERE due.job = given.job

-- query due_drop(set json)
DELETE FROM due WHERE job = {ids}

-- The slot of a cancelled run may still be in the future and is not planned a second time.
-- The facts that decide whether the jobs of ended runs finish or release other runs; read under the locks of the jobs.
-- query ends_facts(set json) -> id int, state int, uid int, queue text, due int, others int, waiting int
SELECT jobs.id, jobs.state, jobs.uid, jobs.queue, coalesce((SELECT due.slot FROM due WHERE due.job = jobs.id), 0) AS due,
	EXISTS (SELECT 1 FROM runs WHERE runs.job = jobs.id AND runs.ended_at = 0 AND NOT runs.id = {ids} OFFSET 0)::int::bigint AS others,
	EXISTS (SELECT 1 FROM runs WHERE runs.state = RUN_QUEUED AND runs.hold <> 0 AND runs.hold = HOLD_PERMIT AND runs.job = jobs.id
		OFFSET 0)::int::bigint AS waiting
FROM jobs WHERE jobs.id = ANY (ARRAY(SELECT DISTINCT runs.job FROM runs WHERE runs.id = {ids}))

-- Fails if one of them is not idle.
-- query jobs_finish_all(set json, now int, n int)
WITH idle AS (UPDATE jobs SET state = JOB_FINISHED, updated_at = :now
	WHERE id = {ids} AND state + 0 = JOB_ACTIVE
		AND NOT EXISTS (SELECT 1 FROM due WHERE due.job = jobs.id OFFSET 0)
		AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.job = jobs.id AND runs.ended_at = 0 OFFSET 0)
	RETURNING id)
SELECT FROM idle HAVING 1 / (count(*) = :n)::int = 1

-- query due_resume(set json, never int, at int)
UPDATE due SET slot = greatest(:at, coalesce((SELECT max(slot) FROM runs WHERE runs.job = due.job), 0) - 1)
WHERE job = {ids} AND slot + 0 = :never
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.job = due.job AND runs.ended_at = 0 OFFSET 0)

-- The first slot; the first end of a pause, or begin of a job's pause set in advance; the first
-- moment at which a queued run expires.
-- query due_first(segments int) -> slot int, pause_end int, expiry int
SELECT CASE WHEN :segments <> 0 THEN (SELECT due.slot FROM due WHERE {in_segments} ORDER BY due.slot LIMIT 1) END AS slot,
	(SELECT min(until) FROM (
		SELECT * FROM (SELECT until FROM pauses WHERE until <> 0 ORDER BY until LIMIT 1) AS scopes
		UNION ALL
		SELECT * FROM (SELECT until FROM job_pauses WHERE until <> 0 ORDER BY until LIMIT 1) AS single
		UNION ALL
		SELECT * FROM (SELECT at AS until FROM job_pauses WHERE later = 1 ORDER BY at LIMIT 1) AS later) AS first) AS pause_end,
	(SELECT slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END FROM runs
		WHERE state = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0))
		ORDER BY slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END LIMIT 1) AS expiry

-- ======== runs ========

-- query run_ids(n int) -> id int
SELECT nextval('runs_id') AS id FROM generate_series(1, :n)

-- query runs_insert(set json) -> id int, state int, queue text, due_at int, uid int, size int, job int, slot_last int,
--	ended_at int, reason text, notifies int, slot_count int
INSERT INTO runs (id, job, uid, kind, state, reason, slot, slot_last, slot_count, due_at, revision,
	priority, queue, created_at, ended_at, overlap, overlap_waiting, places, deadline, expires, gated, notifies,
	forced, caught_up, params)
SELECT id, job, uid, kind, state, reason, slot, slot_last, slot_count, due_at, revision, priority, queue,
	now, CASE WHEN state = RUN_QUEUED THEN 0 ELSE now END, overlap, overlap_waiting, places, deadline, expires, gated,
	notifies, forced, caught_up, params
FROM jsonb_to_recordset(:set) AS given(id bigint, job bigint, uid bigint, kind bigint, state bigint,
	reason text, slot bigint, slot_last bigint, slot_count bigint, due_at bigint, revision bigint,
	priority bigint, queue text, now bigint, overlap bigint, overlap_waiting bigint, places bigint, deadline bigint,
	expires bigint, gated bigint, notifies bigint, forced bigint, caught_up bigint, params text)
ON CONFLICT DO NOTHING
RETURNING id, state, queue, due_at, uid, {run_size}, job, slot_last, ended_at, reason, notifies, slot_count

-- Runs of jobs that are inserted in the same transaction, so no other run can have their slots.
-- query runs_insert_new(set json)
INSERT INTO runs (id, job, uid, kind, state, reason, slot, slot_last, slot_count, due_at, revision,
	priority, queue, created_at, ended_at, overlap, overlap_waiting, places, deadline, expires, gated, notifies,
	forced, caught_up, params)
SELECT id, job, uid, kind, state, reason, slot, slot_last, slot_count, due_at, revision, priority, queue,
	now, CASE WHEN state = RUN_QUEUED THEN 0 ELSE now END, overlap, overlap_waiting, places, deadline, expires, gated,
	notifies, forced, caught_up, params
FROM jsonb_to_recordset(:set) AS given(id bigint, job bigint, uid bigint, kind bigint, state bigint,
	reason text, slot bigint, slot_last bigint, slot_count bigint, due_at bigint, revision bigint,
	priority bigint, queue text, now bigint, overlap bigint, overlap_waiting bigint, places bigint, deadline bigint,
	expires bigint, gated bigint, notifies bigint, forced bigint, caught_up bigint, params text)

-- query lanes() -> queue text, uid int, priority int, due_at int
WITH RECURSIVE lane(queue, uid, priority, due_at) AS (
	(SELECT queue, uid, priority, due_at FROM runs WHERE state = RUN_QUEUED AND hold = 0
	ORDER BY queue, uid, priority, due_at, id LIMIT 1)
	UNION ALL
	SELECT next.queue, next.uid, next.priority, next.due_at
	FROM lane CROSS JOIN LATERAL (SELECT runs.queue, runs.uid, runs.priority, runs.due_at FROM runs
		WHERE state = RUN_QUEUED AND hold = 0
			AND (runs.queue, runs.uid, runs.priority) > (lane.queue, lane.uid, lane.priority)
		ORDER BY runs.queue, runs.uid, runs.priority, runs.due_at, runs.id LIMIT 1) AS next)
SELECT queue, uid, priority, due_at FROM lane

-- The facts about a queued run and its job that a claim decides by.
-- define lane_facts = runs.id, runs.job, runs.kind, runs.attempt, runs.slot, runs.due_at, runs.reason, runs.overlap,
--	runs.overlap_waiting, runs.places, runs.deadline, runs.expires, runs.gated, runs.forced,
--	coalesce(jobs.state, JOB_REMOVED) AS job_state,
--	CASE WHEN jobs.state = JOB_PAUSED THEN (SELECT at FROM job_pauses WHERE job_pauses.job = runs.job)
--		WHEN jobs.state = JOB_ACTIVE AND pausing.stops <> 0
--		THEN (SELECT at FROM job_pauses WHERE job_pauses.job = runs.job AND later = 1) END AS paused_at,
--	CASE WHEN jobs.state = JOB_PAUSED
--		THEN (SELECT until FROM job_pauses WHERE job_pauses.job = runs.job) END AS paused_until,
--	CASE WHEN pausing.stops <> 0
--		THEN (SELECT count(*) FROM pauses_past WHERE pauses_past.job = runs.job
--			AND pauses_past.at <= runs.slot AND pauses_past.until > runs.slot) END AS paused_then,
--	CASE WHEN jobs.state = JOB_PAUSED OR pausing.stops <> 0
--		THEN (SELECT count(*) FROM due WHERE due.job = runs.job) END AS recurs,
--	CASE WHEN runs.places > 0
--		THEN (SELECT count(*) FROM running_jobs WHERE running_jobs.job = runs.job) END AS taken,
--	CASE WHEN runs.places > 0
--		THEN (SELECT place FROM running_jobs WHERE running_jobs.job = runs.job AND running_jobs.run = runs.id)
--		END AS place,
--	CASE WHEN runs.reason = 'rate' AND EXISTS (SELECT 1 FROM runs AS newer WHERE newer.job = runs.job
--		AND newer.slot > runs.slot AND newer.slot <= :now AND newer.kind = RUN_KIND_SCHEDULE) THEN 1::bigint END AS overtaken,
--	runs.caught_up, runs.created_at

-- The queued runs of a lane that may start on a node with these labels; those after a given run.
-- define labels_fit = NOT EXISTS (SELECT 1 FROM json_array_elements_text(CASE WHEN runs.gated & 2 <> 0 THEN jobs.spec::json -> 'node_labels' END)
--		AS need(label) WHERE position(chr(10) || need.label || chr(10) IN :labels) = 0)

-- define lane_all = runs.state = RUN_QUEUED AND runs.hold = 0 AND runs.queue = :queue AND runs.uid = :uid
--	AND runs.priority = :priority AND {labels_fit}

-- define lane_where = {lane_all} AND (runs.due_at, runs.id) > (:due_at, :id)

-- query lane_runs(queue text, uid int, priority int, due_at int, id int, n int, stops int, now int, labels text) -> id int, job int,
--	kind int, attempt int, slot int, due_at int, reason text, overlap int, overlap_waiting int, places int, deadline int,
--	expires int, gated int, forced int, job_state int, paused_at int, paused_until int, paused_then int, recurs int, taken int,
--	place int, overtaken int, caught_up int, created_at int
SELECT {lane_facts}
FROM runs LEFT JOIN jobs ON jobs.id = runs.job CROSS JOIN (SELECT :stops AS stops) AS pausing
WHERE {lane_where}
ORDER BY runs.due_at, runs.id LIMIT :n
FOR UPDATE OF runs SKIP LOCKED

-- As lane_runs, for a claim beside those of other nodes: locks the jobs of the first due runs whose jobs no other
-- transaction has locked. Their facts are read by lane_held afterwards, because this statement may see older ones. A run
-- without a job has no facts that two claims could change. 'passed' counts the runs whose jobs were locked, 'rest' is
-- when the first later run is due.
--
-- Of the first 'window' runs two groups come first: runs of the jobs of this node's segments, so that nodes with a common
-- backlog do not compete for the same rows, and runs that have waited since ':old', so that none starves. The others follow in
-- order.
-- define lane_free = LEFT JOIN LATERAL (SELECT jobs.id FROM jobs WHERE jobs.id = lane.job FOR NO KEY UPDATE SKIP LOCKED) AS held ON true
--	WHERE (held.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = lane.job OFFSET 0))

-- query lane_hold(queue text, uid int, priority int, due_at int, id int, n int, now int, labels text, segments int, window int, old int) ->
--	id int, due_at int, passed int, rest int, stored int
WITH own AS MATERIALIZED (SELECT lane.id, lane.due_at
	FROM (SELECT near.id, near.job, near.due_at
		FROM (SELECT runs.id, runs.job, runs.due_at, coalesce(jobs.segment, 0) AS segment FROM runs LEFT JOIN jobs ON jobs.id = runs.job
			WHERE {lane_where} AND runs.due_at <= :now ORDER BY runs.due_at, runs.id LIMIT :window) AS near
		WHERE (:segments >> near.segment::int) & 1 = 1 OR near.due_at <= :old ORDER BY near.due_at, near.id OFFSET 0) AS lane
	{lane_free} ORDER BY lane.due_at, lane.id LIMIT :n),
others AS MATERIALIZED (SELECT lane.id, lane.due_at
	FROM (SELECT runs.id, runs.job, runs.due_at FROM runs LEFT JOIN jobs ON jobs.id = runs.job
			WHERE {lane_where} AND runs.due_at <= :now ORDER BY runs.due_at, runs.id OFFSET 0) AS lane
	{lane_free} AND lane.id NOT IN (SELECT own.id FROM own)
	ORDER BY lane.due_at, lane.id LIMIT :n - (SELECT count(*) FROM own)),
picked AS MATERIALIZED (SELECT id, due_at FROM own UNION ALL SELECT id, due_at FROM others),
last AS (SELECT due_at, id FROM (SELECT due_at, id FROM picked ORDER BY due_at DESC, id DESC LIMIT 1) AS newest
	WHERE (SELECT count(*) FROM picked) >= :n
	UNION ALL SELECT :now, 9223372036854775807 WHERE (SELECT count(*) FROM picked) < :n)
SELECT picked.id, picked.due_at, (SELECT count(*) FROM runs LEFT JOIN jobs ON jobs.id = runs.job
		WHERE {lane_where} AND (runs.due_at, runs.id) <= ((SELECT due_at FROM last), (SELECT id FROM last))) - (SELECT count(*) FROM picked) AS passed,
	coalesce((SELECT runs.due_at FROM runs LEFT JOIN jobs ON jobs.id = runs.job
		WHERE {lane_all} AND runs.due_at > :now ORDER BY runs.due_at, runs.id LIMIT 1), 9223372036854775807) AS rest,
	(SELECT length(set_config('jobsched.held', coalesce((SELECT jsonb_agg(picked.id ORDER BY picked.due_at, picked.id) FROM picked), '[]')::text,
		true)))::bigint AS stored
FROM (SELECT 1) AS one LEFT JOIN picked ON true
ORDER BY picked.due_at, picked.id

-- The runs whose jobs the last lane_hold of this transaction has locked.
-- define held_runs = jsonb_array_elements_text(current_setting('jobsched.held', true)::jsonb) WITH ORDINALITY AS wanted(value, place)
--	JOIN runs ON runs.id = wanted.value::bigint LEFT JOIN jobs ON jobs.id = runs.job

-- Between the snapshot of lane_hold and its locks, another transaction may have changed the job or its runs, or ended its
-- pause. So all conditions of the lane are checked again, and whether slots inside pauses of single jobs must be skipped.
-- query lane_held(stops int, now int, queue text, uid int, priority int, labels text) -> id int, job int,
--	kind int, attempt int, slot int, due_at int, reason text, overlap int, overlap_waiting int, places int, deadline int,
--	expires int, gated int, forced int, job_state int, paused_at int, paused_until int, paused_then int, recurs int, taken int,
--	place int, overtaken int, caught_up int, created_at int
SELECT {lane_facts} FROM {held_runs}
	CROSS JOIN (SELECT CASE WHEN :stops <> 0 OR EXISTS (SELECT 1 FROM pauses_past WHERE job > 0)
		OR EXISTS (SELECT 1 FROM job_pauses WHERE later = 1 AND at <= :now) THEN 1 ELSE 0 END AS stops OFFSET 0) AS pausing
WHERE coalesce(runs.state = RUN_QUEUED AND runs.hold = 0 AND runs.queue = :queue AND runs.uid = :uid
		AND runs.priority = :priority AND runs.due_at <= :now, false) AND {labels_fit}
ORDER BY wanted.place

-- query lane_rows() -> {run_row}, spec text, digest int, typical int, revision_now int
SELECT {run_columns}, jobs.spec, jobs.digest,
	CASE WHEN runs.notifies = 1 THEN (SELECT typical FROM job_health WHERE job_health.job = runs.job) END AS typical,
	coalesce(jobs.revision, runs.revision) AS revision_now
FROM {held_runs} WHERE coalesce(runs.state = RUN_QUEUED AND runs.hold = 0, false) ORDER BY wanted.place

-- query runs_claim(node text, spawner text, now int, set json) -> id int, uid int, queue text
UPDATE runs SET state = RUN_CLAIMED, node = :node, spawner = :spawner, fence = fence + 1, claimed_at = :now,
	revision = coalesce((SELECT jobs.revision FROM jobs WHERE jobs.id = runs.job), revision), reason = NULL
WHERE id = {ids} AND state + 0 = RUN_QUEUED
RETURNING id, uid, queue

-- query runs_settle(set json, now int) -> id int, job int, uid int, queue text, state int, fence int,
--	slot_last int, reason text, notifies int
UPDATE runs SET state = given.state, reason = given.reason, ended_at = :now, hold = HOLD_NONE
FROM (SELECT given.* FROM jsonb_to_recordset(:set) AS given(run bigint, state bigint, reason text) {each_run}) AS given
WHERE runs.id = given.run AND coalesce(runs.state = RUN_QUEUED, false)
RETURNING id, job, uid, queue, runs.state, fence, runs.slot_last, runs.reason, runs.notifies

-- Queued runs whose last possible start has passed.
-- query runs_too_late(now int, n int) -> id int, uid int, queue text, slot int, due_at int, attempt int, deadline int, expires int, reason text
SELECT id, uid, queue, slot, due_at, attempt, deadline, expires, reason FROM runs
WHERE state = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0))
	AND slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END < :now
ORDER BY slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END LIMIT :n
FOR UPDATE

-- Locks the jobs of these runs, except jobs that another transaction has locked. Stores the runs in a setting of the
-- transaction, where runs_expired reads them.
-- query runs_expired_hold(now int, n int) -> stored int
SELECT length(set_config('jobsched.late', coalesce((SELECT jsonb_agg(found.id) FROM (SELECT late.id
		FROM (SELECT id, job FROM runs
			WHERE state = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0))
				AND slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END < :now
			ORDER BY slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END
			OFFSET 0) AS late
			LEFT JOIN LATERAL (SELECT jobs.id FROM jobs WHERE jobs.id = late.job FOR NO KEY UPDATE SKIP LOCKED) AS held ON true
		WHERE held.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = late.job OFFSET 0)
		LIMIT :n) AS found), '[]')::text, true))::bigint AS stored

-- query runs_expired(now int) -> id int, uid int, queue text, slot int, due_at int, attempt int, deadline int, expires int, reason text
SELECT id, uid, queue, slot, due_at, attempt, deadline, expires, reason FROM runs
WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(current_setting('jobsched.late', true)::jsonb) AS given(value)))
	AND state + 0 = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0))
	AND slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END < :now

-- query runs_put_off(set json)
UPDATE runs SET hold = given.hold, due_at = given.due_at, reason = given.reason
FROM (SELECT given.* FROM jsonb_to_recordset(:set) AS given(run bigint, hold bigint, due_at bigint, reason text)
	{each_run}) AS given
WHERE runs.id = given.run AND coalesce(runs.state = RUN_QUEUED, false)

-- query runs_replace(set json)
UPDATE runs SET cancel_asked = 1, reason = 'replaced' WHERE id = {ids} AND state + 0 IN (RUN_CLAIMED, RUN_RUNNING)

-- Runs that wait for a permit of these jobs.
-- query permits_awaiting(set json) -> id int
SELECT id FROM runs WHERE state = RUN_QUEUED AND hold <> 0 AND hold = HOLD_PERMIT AND job = {ids} ORDER BY id FOR UPDATE

-- query permits_awaited(set json) -> job int, n int
SELECT wanted.value::bigint AS job, (SELECT count(*) FROM runs WHERE state = RUN_QUEUED AND hold <> 0
	AND hold = HOLD_PERMIT AND runs.job = wanted.value::bigint) AS n
FROM jsonb_array_elements_text(:set) AS wanted(value)

-- Queued slots without an attempt that are older than the given slot of their job.
-- query runs_older(set json) -> id int
SELECT older.id FROM jsonb_to_recordset(:set) AS given(job bigint, slot bigint)
	CROSS JOIN LATERAL (SELECT runs.id, runs.state, runs.kind, runs.attempt, runs.slot FROM runs
		WHERE runs.job = given.job AND runs.ended_at = 0 OFFSET 0) AS older
WHERE older.state = RUN_QUEUED AND older.kind = RUN_KIND_SCHEDULE AND older.attempt = 0 AND older.slot < given.slot

-- The number of free permits of these jobs: neither in use nor reserved for a run that was released
-- before.
-- query permits_room(set json) -> job int, n int
SELECT held.job, held.places - (SELECT count(*) FROM running_jobs WHERE running_jobs.job = held.job)
	- (SELECT count(*) FROM runs WHERE runs.job = held.job AND runs.state = RUN_QUEUED
		AND runs.hold = 0 AND runs.reason IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM running_jobs WHERE running_jobs.job = runs.job
			AND running_jobs.run = runs.id OFFSET 0)) AS n
FROM jsonb_array_elements_text(:set) AS wanted(value) JOIN runs AS held ON held.id =
	(SELECT waits.id FROM runs AS waits WHERE waits.state = RUN_QUEUED AND waits.hold <> 0
		AND waits.hold = HOLD_PERMIT AND waits.job = wanted.value::bigint
		ORDER BY waits.hold, waits.job, waits.slot, waits.id LIMIT 1)

-- Releases the first run of each job that waits for a permit.
-- query permits_release(set json) -> id int, due_at int
UPDATE runs SET hold = HOLD_NONE
WHERE id = ANY (ARRAY(SELECT first.id FROM jsonb_array_elements_text(:set) AS wanted(value)
	CROSS JOIN LATERAL (SELECT held.id FROM runs AS held
		WHERE held.state = RUN_QUEUED AND held.hold <> 0 AND held.hold = HOLD_PERMIT
			AND held.job = wanted.value::bigint
		ORDER BY held.hold, held.job, held.slot, held.id LIMIT 1) AS first))
RETURNING id, due_at

-- The open runs of a locked job, with what decides about them. 'planned': not due, and without an attempt.
-- query job_open_runs(job int, now int) -> id int, uid int, state int, hold int, slot int, queue text, planned int, size int
SELECT id, uid, state, hold, slot, queue, (state = RUN_QUEUED AND kind = RUN_KIND_SCHEDULE AND attempt = 0
	AND slot > :now AND due_at > :now)::int::bigint AS planned, {run_size}
FROM runs WHERE job = :job AND ended_at = 0 ORDER BY id

-- query job_active_runs(job int) -> {run_row}, node_name text
SELECT {run_columns}, {node_named}
FROM runs LEFT JOIN LATERAL (SELECT name, owner FROM jobs WHERE id = runs.job OFFSET 0) AS jobs ON true
WHERE runs.job = :job AND runs.ended_at = 0 AND runs.state + 0 IN (RUN_CLAIMED, RUN_RUNNING) ORDER BY runs.id

-- Each of the next three fails if it finds another number of rows.
-- query runs_unplan_all(job int, now int, n int)
WITH done AS (DELETE FROM runs
	WHERE job = :job AND ended_at = 0 AND state = RUN_QUEUED AND kind = RUN_KIND_SCHEDULE AND attempt = 0
		AND slot > :now AND due_at > :now
	RETURNING id)
SELECT FROM done HAVING 1 / (count(*) = :n)::int = 1

-- query runs_cancel_all(set json, reason text, now int, n int)
WITH done AS (UPDATE runs SET state = RUN_CANCELLED, reason = :reason, ended_at = :now, hold = HOLD_NONE
	WHERE id = {ids} AND state + 0 = RUN_QUEUED
	RETURNING id)
SELECT FROM done HAVING 1 / (count(*) = :n)::int = 1

-- query runs_unhold_all(set json, hold int, n int)
WITH done AS (UPDATE runs SET hold = HOLD_NONE, reason = NULL
	WHERE id = {ids} AND state + 0 = RUN_QUEUED AND hold + 0 = :hold
	RETURNING id)
SELECT FROM done HAVING 1 / (count(*) = :n)::int = 1

-- ======== permits, limits, pauses ========

-- The lock of all writers (ops/batch.c). Earlier versions take it exclusively for each batch.
-- query writers_exclude()
SELECT FROM meta WHERE key = 'store_id' FOR UPDATE

-- query writers_share()
SELECT FROM meta WHERE key = 'store_id' FOR KEY SHARE

-- KEY SHARE waits for writer_enter, but not for writer_put.
-- query writers_wait()
SELECT FROM writers ORDER BY id FOR KEY SHARE

-- query writer_enter(id text)
SELECT FROM writers WHERE id = :id FOR UPDATE

-- These jobs, the jobs of these runs, and the jobs that run after the latter.
-- query batch_jobs_lock(jobs json, runs json)
WITH mine AS MATERIALIZED (SELECT DISTINCT runs.job FROM jsonb_array_elements_text(:runs) AS given(value)
	JOIN runs ON runs.id = given.value::bigint)
SELECT FROM jobs
WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(:jobs) AS given(value)
	UNION SELECT job FROM mine
	UNION SELECT chains.child FROM mine JOIN jobs AS parent ON parent.id = mine.job
		CROSS JOIN LATERAL (SELECT by_name.child FROM chains AS by_name
				WHERE by_name.uid = parent.uid AND by_name.parent = parent.name
			UNION ALL SELECT by_number.child FROM chains AS by_number
				WHERE by_number.uid = parent.uid AND by_number.parent = parent.id::text) AS chains))
ORDER BY id FOR NO KEY UPDATE

-- query moves_prune(keep int)
DELETE FROM run_moves WHERE id = ANY (ARRAY(SELECT id FROM run_moves
	WHERE id < (SELECT max(newest.id) FROM run_moves AS newest) - :keep ORDER BY id FOR UPDATE SKIP LOCKED))

-- query permits_of(set json) -> job int, place int, run int
SELECT job, place, run FROM running_jobs WHERE job = {ids} ORDER BY job, place

-- query permits_lock(set json) -> job int, place int, run int
SELECT job, place, run FROM running_jobs WHERE job = {ids} ORDER BY job, place FOR UPDATE

-- The two statements below fail if the rows differ from those that the claim has read under the locks.
-- query runs_claim_all(node text, spawner text, now int, set json, n int)
WITH moved AS (UPDATE runs SET state = RUN_CLAIMED, node = :node, spawner = :spawner, fence = fence + 1, claimed_at = :now,
		revision = coalesce((SELECT jobs.revision FROM jobs WHERE jobs.id = runs.job), revision), reason = NULL
	WHERE id = {ids} AND state + 0 = RUN_QUEUED AND hold + 0 = HOLD_NONE
	RETURNING id)
SELECT FROM moved HAVING 1 / (count(*) = :n)::int = 1

-- query permits_put(set json)
INSERT INTO running_jobs (job, place, run)
SELECT job, place, run FROM jsonb_to_recordset(:set) AS given(job bigint, place bigint, run bigint)

-- query permits_insert(set json, place int) -> run int
INSERT INTO running_jobs (job, place, run)
SELECT job, :place, id FROM runs WHERE id = {ids}
ON CONFLICT DO NOTHING
RETURNING run

-- query permits_free(set json)
DELETE FROM running_jobs
WHERE job = {ids}
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = running_jobs.run AND runs.ended_at + 0 = 0 OFFSET 0)

-- query active_now(what int, node text) -> uid int, queue text, n int, here int
SELECT state AS uid, queue, sum(n)::bigint AS n, sum(CASE WHEN node = :node THEN n ELSE 0 END)::bigint AS here
FROM counters WHERE what = :what GROUP BY state, queue

-- query buckets_put(set json)
INSERT INTO buckets (scope, key, full_at)
SELECT scope, key, full_at FROM jsonb_to_recordset(:set) AS given(scope text, key text, full_at bigint)
ON CONFLICT (scope, key) DO UPDATE SET full_at = excluded.full_at

-- Pauses in force, and past pauses, which still decide about slots inside them. Past pauses of
-- single jobs and their pauses set in advance are read with each run (lane_runs); here one row
-- tells that there are any.
-- query pauses_now() -> scope text, key text, uid int, spared text, at int, until int, past int, later int
SELECT scope, key, uid, spared, at, until, 0::bigint AS past, later FROM pauses
UNION ALL
SELECT scope, key, uid, spared, at, until, 1::bigint AS past, 0::bigint AS later FROM pauses_past WHERE job = 0
UNION ALL
SELECT * FROM (SELECT scope, key, uid, spared, at, until, 1::bigint AS past, 0::bigint AS later FROM pauses_past WHERE job > 0 LIMIT 1) AS single
UNION ALL
SELECT * FROM (SELECT 'job' AS scope, '' AS key, -1::bigint AS uid, '' AS spared, at, until, 1::bigint AS past, later FROM job_pauses WHERE later = 1
	ORDER BY at LIMIT 1) AS ordered

-- query job_pauses_keep(set json, now int)
INSERT INTO pauses_past (job, scope, key, uid, at, until, spared)
SELECT job, 'job', '', -1, at, CASE WHEN until = 0 OR until > :now THEN :now ELSE until END, '' FROM job_pauses
WHERE job = {ids} AND (later = 0 OR at < :now)
ON CONFLICT DO NOTHING

-- Queued slots inside a pause without an attempt, of jobs that have further slots.
-- query runs_inside_jobs(set json) -> id int
SELECT inside.id FROM jsonb_to_recordset(:set) AS given(job bigint, since bigint, before bigint)
	CROSS JOIN LATERAL (SELECT runs.id FROM runs WHERE runs.job = given.job AND runs.ended_at = 0
		AND runs.state = RUN_QUEUED AND runs.kind = RUN_KIND_SCHEDULE AND runs.attempt = 0 AND runs.slot >= given.since
		AND runs.slot < given.before OFFSET 0) AS inside
WHERE EXISTS (SELECT 1 FROM due WHERE due.job = given.job)

-- query runs_inside(since int, before int, uid int, queue text) -> id int, job int
SELECT id, job FROM runs
WHERE state = RUN_QUEUED AND state <> RUN_SUCCEEDED AND slot >= :since AND slot < :before AND kind = RUN_KIND_SCHEDULE
	AND attempt = 0 AND (:uid < 0 OR uid = :uid) AND (:queue = '' OR queue = :queue)
	AND EXISTS (SELECT 1 FROM due WHERE due.job = runs.job)

-- query jobs_gated(set json) -> id int, uid int, owner text, spec text, digest int, full_at int
SELECT jobs.id, jobs.uid, jobs.owner, jobs.spec, jobs.digest, buckets.full_at
FROM jsonb_array_elements_text(:set) AS wanted(value) JOIN jobs ON jobs.id = wanted.value::bigint
	LEFT JOIN buckets ON buckets.scope = 'job' AND buckets.key = wanted.value

-- query jobs_tagged(set json, key text, value text) -> job int
SELECT job FROM job_tags WHERE key = :key AND value = :value AND job = {ids}

-- query jobs_tagged_key(set json, key text) -> job int
SELECT job FROM job_tags WHERE key = :key AND job = {ids}

-- ======== run progress ========

-- The claimed runs that have started, if their fence and node are still the same.
-- define start_runs = UPDATE runs SET state = RUN_RUNNING, started_at = given.at,
--	first_start = CASE WHEN runs.first_start = 0 THEN given.at ELSE runs.first_start END,
--	attempt = greatest(runs.attempt, given.attempt)
--	FROM (SELECT given.* FROM jsonb_to_recordset(:set) AS given(run bigint, fence bigint, node text,
--		attempt bigint, at bigint) {each_run}) AS given
--	WHERE runs.id = given.run AND coalesce(runs.fence = given.fence AND runs.node = given.node
--		AND runs.state = RUN_CLAIMED, false)

-- query runs_started(set json) -> id int, queue text
{start_runs} RETURNING id, queue

-- query runs_lock(set json) -> id int, job int, uid int, state int, fence int, node text, queue text,
--	reason text, cancel_asked int, job_state int, slot_last int, notifies int, chained int, slot int
SELECT runs.id, runs.job, runs.uid, runs.state, runs.fence, runs.node, runs.queue, runs.reason, runs.cancel_asked,
	coalesce((SELECT jobs.state FROM jobs WHERE jobs.id = runs.job), JOB_REMOVED) AS job_state,
	runs.slot_last, runs.notifies,
	(EXISTS (SELECT 1 FROM chains WHERE chains.uid = runs.uid AND chains.parent = runs.job::text OFFSET 0) OR
		EXISTS (SELECT 1 FROM chains WHERE chains.uid = runs.uid
			AND chains.parent = (SELECT jobs.name FROM jobs WHERE jobs.id = runs.job) OFFSET 0))::int::bigint AS chained, runs.slot
FROM runs WHERE id = {ids} ORDER BY id FOR UPDATE

-- query runs_end(set json)
UPDATE runs SET state = given.state, reason = given.reason,
	attempt = greatest(runs.attempt, given.attempt), lost = runs.lost + given.lost,
	failures = runs.failures + given.failures, dead_at = given.dead_at, spawner = NULL,
	first_start = CASE WHEN runs.first_start = 0 THEN given.first_start ELSE runs.first_start END,
	node = CASE WHEN given.state = RUN_QUEUED THEN NULL ELSE runs.node END,
	due_at = CASE WHEN given.state = RUN_QUEUED THEN given.due_at ELSE runs.due_at END,
	claimed_at = CASE WHEN given.state = RUN_QUEUED THEN 0 ELSE runs.claimed_at END,
	started_at = CASE WHEN given.state = RUN_QUEUED THEN 0
		WHEN runs.started_at = 0 THEN given.started_at ELSE runs.started_at END,
	ended_at = CASE WHEN given.state = RUN_QUEUED THEN 0 ELSE given.ended_at END,
	exit_code = CASE WHEN given.state = RUN_QUEUED THEN -1 ELSE given.exit_code END,
	term_signal = CASE WHEN given.state = RUN_QUEUED THEN 0 ELSE given.term_signal END
FROM (SELECT given.* FROM jsonb_to_recordset(:set) AS given(run bigint, state bigint, reason text,
	attempt bigint, lost bigint, failures bigint, dead_at bigint, first_start bigint, due_at bigint, started_at bigint,
	ended_at bigint, exit_code bigint, term_signal bigint) {each_run}) AS given
WHERE runs.id = given.run AND coalesce(runs.state IN (RUN_CLAIMED, RUN_RUNNING), false)

-- query run_give_back(id int, fence int, node text, due_at int) -> id int, queue text
UPDATE runs SET state = RUN_QUEUED, node = NULL, spawner = NULL, claimed_at = 0, due_at = :due_at
WHERE id = :id AND fence = :fence AND node = :node AND state + 0 = RUN_CLAIMED
	AND cancel_asked = 0
RETURNING id, queue

-- query runs_cancel_queued(set json, reason text, now int) -> id int, queue text
UPDATE runs SET state = RUN_CANCELLED, reason = :reason, ended_at = :now, hold = HOLD_NONE
WHERE id = {ids} AND state + 0 = RUN_QUEUED
RETURNING id, queue

-- query run_job_lock(id int) -> job int
SELECT jobs.id AS job FROM runs JOIN jobs ON jobs.id = runs.job WHERE runs.id = :id FOR NO KEY UPDATE OF jobs SKIP LOCKED

-- query runs_ask_cancel(set json)
UPDATE runs SET cancel_asked = 1 WHERE id = {ids} AND state + 0 IN (RUN_CLAIMED, RUN_RUNNING)

-- query runs_open_of(job int) -> id int, state int
SELECT id, state FROM runs WHERE job = :job AND ended_at = 0 ORDER BY id FOR UPDATE

-- ======== attempts ========

-- The last attempt of each run.
-- query attempts_last(set json) -> run int, outcome int, exit_code int, term_signal int, error text, node_name text
SELECT attempts.run, attempts.outcome, attempts.exit_code, attempts.term_signal, attempts.error,
	(SELECT nodes.name FROM nodes WHERE nodes.id = attempts.node) AS node_name
FROM attempts
WHERE attempts.run = {ids} AND attempts.fence = (SELECT max(other.fence) FROM attempts AS other WHERE other.run = attempts.run)

-- The same, and fails unless all of them have moved.
-- query runs_started_all(set json, n int)
WITH moved AS ({start_runs} RETURNING id)
SELECT FROM moved HAVING 1 / (count(*) = :n)::int = 1

-- query attempts_started(set json)
INSERT INTO attempts (run, fence, number, node, spawner, pid, started_at, ended_at, outcome,
	exit_code, term_signal, cpu_user, cpu_system, max_rss, output_bytes, output_dropped)
SELECT run, fence, attempt, node, spawner, pid, at, 0, ATTEMPT_RUNNING, -1, 0, 0, 0, 0, 0, 0
FROM jsonb_to_recordset(:set) AS given(run bigint, fence bigint, attempt bigint, node text,
	spawner text, pid bigint, at bigint)
ON CONFLICT DO NOTHING

-- query attempts_ended(set json)
INSERT INTO attempts (run, fence, number, node, spawner, pid, started_at, ended_at, outcome,
	exit_code, term_signal, cpu_user, cpu_system, max_rss, io_read, io_written, output_bytes, output_dropped, error)
SELECT run, fence, attempt, node, spawner, pid, started_at, ended_at, outcome, exit_code, term_signal,
	cpu_user, cpu_system, max_rss, io_read, io_written, output_bytes, output_dropped, error
FROM jsonb_to_recordset(:set) AS given(run bigint, fence bigint, attempt bigint, node text,
	spawner text, pid bigint, started_at bigint, ended_at bigint, outcome bigint,
	exit_code bigint, term_signal bigint, cpu_user bigint, cpu_system bigint, max_rss bigint, io_read bigint, io_written bigint,
	output_bytes bigint, output_dropped bigint, error text)
ON CONFLICT (run, fence) DO UPDATE SET ended_at = excluded.ended_at, outcome = excluded.outcome,
	exit_code = excluded.exit_code, term_signal = excluded.term_signal,
	cpu_user = excluded.cpu_user, cpu_system = excluded.cpu_system,
	max_rss = excluded.max_rss, io_read = excluded.io_read, io_written = excluded.io_written, output_bytes = excluded.output_bytes,
	output_dropped = excluded.output_dropped, error = excluded.error,
	pid = CASE WHEN attempts.pid = 0 THEN excluded.pid ELSE attempts.pid END,
	started_at = CASE WHEN attempts.started_at = 0 THEN excluded.started_at
		ELSE attempts.started_at END
WHERE attempts.outcome IN (ATTEMPT_RUNNING, ATTEMPT_LOST)

-- The last part of an attempt's output as base64, for other nodes.
-- query outputs_put(set json) -> uid int, size int
INSERT INTO outputs (run, fence, tail)
SELECT run, fence, convert_to(value, 'UTF8') FROM jsonb_to_recordset(:set) AS given(run bigint, fence bigint, value text)
ON CONFLICT DO NOTHING
RETURNING coalesce((SELECT runs.uid FROM runs WHERE runs.id = outputs.run), -1) AS uid, {tail_size}

-- query output_get(run int, fence int) -> tail text
SELECT convert_from(tail, 'UTF8') AS tail FROM outputs WHERE run = :run AND fence = :fence

-- ======== chains ========

-- query chains_insert(set json)
INSERT INTO chains (child, link, uid, parent, mode)
SELECT job, value, uid, name, n FROM jsonb_to_recordset(:set) AS given(job bigint, value text, uid bigint, name text, n bigint)
ON CONFLICT DO NOTHING

-- query chains_prune(set json)
DELETE FROM chains WHERE child = {ids}

-- The jobs that run after the jobs of a set, locked in ascending order.
-- query chain_children(set json) -> run int, child int, uid int, revision int, priority int, queue text, spec text, mode int,
--	link text
SELECT given.run, jobs.id AS child, jobs.uid, jobs.revision, jobs.priority, jobs.queue, jobs.spec, chains.mode, chains.link
FROM jsonb_to_recordset(:set) AS given(run bigint, job bigint)
	JOIN jobs AS parent ON parent.id = given.job
	CROSS JOIN LATERAL (SELECT by_name.child, by_name.mode, by_name.link FROM chains AS by_name
			WHERE by_name.uid = parent.uid AND by_name.parent = parent.name
		UNION ALL SELECT by_number.child, by_number.mode, by_number.link FROM chains AS by_number
			WHERE by_number.uid = parent.uid AND by_number.parent = parent.id::text) AS chains
	JOIN jobs ON jobs.id = chains.child
WHERE jobs.state IN (JOB_ACTIVE, JOB_PAUSED)
ORDER BY jobs.id FOR NO KEY UPDATE OF jobs

-- The links of a job, with the runs of each parent that have the slot.
-- query chain_parents(child int, slot int) -> link text, state int, exit_code int
SELECT chains.link, coalesce(runs.state, RUN_QUEUED) AS state, coalesce(runs.exit_code, -1) AS exit_code
FROM chains CROSS JOIN LATERAL (SELECT coalesce(
		(SELECT jobs.id FROM jobs WHERE jobs.uid = chains.uid AND jobs.name = chains.parent ORDER BY jobs.id DESC LIMIT 1),
		CASE WHEN chains.parent ~ '^[0-9]{1,18}$' THEN chains.parent::bigint END) AS id OFFSET 0) AS parent
	LEFT JOIN LATERAL (SELECT given.state, given.exit_code FROM runs AS given
		WHERE given.job = parent.id AND given.slot = :slot OFFSET 0) AS runs ON true
WHERE chains.child = :child ORDER BY chains.link

-- The jobs of a set, given by name or number, and all jobs that they run after. 'job' is 0 if there
-- is no such live job.
-- query chain_ancestors(uid int, set json) -> ref text, job int, direct int
WITH RECURSIVE up(ref, job, direct) AS (
	SELECT given.name, coalesce((SELECT jobs.id FROM jobs WHERE jobs.uid = :uid AND jobs.state < JOB_FINISHED
		AND jobs.name = given.name), (SELECT jobs.id FROM jobs WHERE jobs.uid = :uid AND jobs.state < JOB_FINISHED
		AND jobs.id = CASE WHEN given.name ~ '^[0-9]{1,18}$' THEN given.name::bigint END), 0), 1::bigint
	FROM jsonb_to_recordset(:set) AS given(name text)
	UNION
	SELECT chains.parent, coalesce((SELECT jobs.id FROM jobs WHERE jobs.uid = :uid AND jobs.state < JOB_FINISHED
		AND jobs.name = chains.parent), CASE WHEN chains.parent ~ '^[0-9]{1,18}$' THEN chains.parent::bigint ELSE 0 END), 0::bigint
	FROM up JOIN chains ON chains.child = up.job)
SELECT ref, job, direct FROM up

-- The links of the jobs of a set to their parents, and to their children. 'parent' is 0 if there is no such job.
-- query chain_links_up(set json, n int) -> parent int, child int, link text
SELECT coalesce((SELECT jobs.id FROM jobs WHERE jobs.uid = chains.uid AND jobs.name = chains.parent ORDER BY jobs.id DESC LIMIT 1),
	(SELECT jobs.id FROM jobs WHERE jobs.uid = chains.uid
		AND jobs.id = CASE WHEN chains.parent ~ '^[0-9]{1,18}$' THEN chains.parent::bigint END), 0) AS parent,
	chains.child, chains.link
FROM chains WHERE chains.child = {ids} ORDER BY chains.child, chains.link LIMIT :n

-- query chain_links_down(set json, n int) -> parent int, child int, link text
SELECT parent.id AS parent, chains.child, chains.link
FROM jobs AS parent
	CROSS JOIN LATERAL (SELECT by_name.child, by_name.link FROM chains AS by_name
			WHERE by_name.uid = parent.uid AND by_name.parent = parent.name
		UNION ALL SELECT by_number.child, by_number.link FROM chains AS by_number
			WHERE by_number.uid = parent.uid AND by_number.parent = parent.id::text) AS chains
	JOIN jobs ON jobs.id = chains.child
WHERE parent.id = {ids} AND jobs.state < JOB_CANCELLED
ORDER BY parent.id, chains.child, chains.link LIMIT :n

-- ======== progress ========

-- query progress_put(set json) -> run int, job int, uid int
INSERT INTO run_progress (run, fence, percent, text, at)
SELECT given.run, given.fence, given.n, given.value, given.at
FROM jsonb_to_recordset(:set) AS given(run bigint, fence bigint, n bigint, value text, at bigint)
	JOIN runs ON runs.id = given.run AND runs.fence = given.fence
ORDER BY given.run
ON CONFLICT (run) DO UPDATE SET fence = excluded.fence, percent = excluded.percent, text = excluded.text, at = excluded.at
RETURNING run, (SELECT runs.job FROM runs WHERE runs.id = run_progress.run) AS job,
	(SELECT runs.uid FROM runs WHERE runs.id = run_progress.run) AS uid

-- The usual duration is the mean of the successful runs among the newest 20 of the job.
-- query progress_get(set json) -> run int, percent int, text text, at int, started_at int, usual int
SELECT runs.id AS run, coalesce(run_progress.percent, -1) AS percent, run_progress.text, coalesce(run_progress.at, 0) AS at,
	runs.started_at, coalesce((SELECT avg(newest.ended_at - newest.started_at)::bigint
		FROM (SELECT mine.started_at, mine.ended_at, mine.state FROM runs AS mine WHERE mine.job = runs.job
			ORDER BY mine.slot DESC LIMIT 20) AS newest
		WHERE newest.state = RUN_SUCCEEDED), 0) AS usual
FROM runs LEFT JOIN run_progress ON run_progress.run = runs.id AND run_progress.fence = runs.fence
WHERE runs.id = {ids}

-- query progress_prune(set json)
DELETE FROM run_progress WHERE run = {ids}

-- ======== results ========

-- query results_put(set json)
INSERT INTO results (run, key, value, uid, slot)
SELECT run, key, value, uid, slot
FROM jsonb_to_recordset(:set) AS given(run bigint, key text, value text, uid bigint, slot bigint)
ON CONFLICT DO NOTHING

-- query run_states_prune(set json) -> uid int, size int
DELETE FROM run_states WHERE run = {ids}
	AND coalesce((SELECT runs.ended_at FROM runs WHERE runs.id = run_states.run), 1) <> 0
RETURNING uid, {state_size}

-- query results_prune(set json) -> uid int, size int
DELETE FROM results WHERE run = {ids} RETURNING uid, {result_size}

-- query results_get(set json) -> run int, key text, value text
SELECT run, key, value FROM results WHERE run = {ids} ORDER BY run, key

-- ======== after downtime or a clock change ========

-- The last time at which an engine was known to be active: it created the newest run, or it closed
-- its node.
-- query last_seen() -> at int
SELECT greatest(coalesce((SELECT created_at FROM runs ORDER BY id DESC LIMIT 1), 0),
	coalesce((SELECT max(closed_at) FROM nodes), 0)) AS at

-- query runs_late(since int, until int, after int, n int) -> id int, job int, slot int, name text, revision int,
--	spec text, created_at int, due_slot int
SELECT runs.id, runs.job, runs.slot, jobs.name, jobs.revision, jobs.spec, jobs.created_at,
	coalesce(due.slot, 0) AS due_slot
FROM runs JOIN jobs ON jobs.id = runs.job LEFT JOIN due ON due.job = runs.job
WHERE runs.state = RUN_QUEUED AND runs.state <> RUN_SUCCEEDED AND runs.slot > :since AND runs.slot <= :until
	AND runs.due_at <= :until AND runs.kind = RUN_KIND_SCHEDULE AND runs.fence = 0 AND runs.hold = 0
	AND runs.job > :after
ORDER BY runs.job, runs.slot LIMIT :n

-- query runs_miss(set json, now int) -> id int, queue text, job int, slot_last int, notifies int
UPDATE runs SET state = RUN_SKIPPED, reason = 'missed', ended_at = :now
WHERE id = {ids} AND state = RUN_QUEUED
RETURNING id, queue, job, slot_last, notifies

-- query runs_catch_up(set json)
UPDATE runs SET caught_up = 1 WHERE id = {ids} AND state + 0 = RUN_QUEUED

-- query due_undo(set json, after int, never int, at int)
UPDATE due SET slot = :at
WHERE (slot > :after AND slot < :never) OR job = {ids}

-- ======== pauses ========

-- query job_control(id int, uid int) -> uid int, owner text, name text, state int, reason text, queue text,
--	revision int, priority int, created_at int, spec text, digest int
SELECT uid, owner, name, state, reason, queue, revision, priority, created_at, spec, digest FROM jobs
WHERE id = :id AND (:uid < 0 OR uid = :uid) AND state <> JOB_REMOVED
FOR UPDATE

-- query job_pauses_put(set json, until int)
INSERT INTO job_pauses (job, by_uid, by_name, at, until)
SELECT job, uid, owner, now, :until FROM jsonb_to_recordset(:set) AS given(job bigint, uid bigint, owner text, now bigint)
ON CONFLICT (job) DO UPDATE SET by_uid = excluded.by_uid, by_name = excluded.by_name, at = excluded.at,
	until = excluded.until, reason = NULL, later = 0

-- query jobs_pause_due(set json, now int) -> id int, queue text, uid int, name text, reason text
UPDATE jobs SET state = JOB_PAUSED, updated_at = :now,
	reason = (SELECT job_pauses.reason FROM job_pauses WHERE job_pauses.job = jobs.id)
WHERE id = {ids} AND state + 0 = JOB_ACTIVE
	AND EXISTS (SELECT 1 FROM job_pauses WHERE job_pauses.job = jobs.id AND later = 1 AND at <= :now)
RETURNING id, queue, uid, name, reason

-- query job_pauses_begin(set json, now int)
UPDATE job_pauses SET later = 0 WHERE job = {ids} AND later = 1 AND at <= :now

-- query job_pauses_drop(set json)
DELETE FROM job_pauses WHERE job = {ids}

-- query job_pauses_end(set json, now int)
DELETE FROM job_pauses WHERE job = {ids} AND until <> 0 AND until <= :now

-- query jobs_lock(set json) -> id int
SELECT id FROM jobs WHERE id = {ids} ORDER BY id
FOR UPDATE

-- query jobs_unpause(set json, now int) -> id int, queue text, uid int, name text
UPDATE jobs SET state = JOB_ACTIVE, reason = NULL, updated_at = :now
WHERE id = {ids} AND state + 0 = JOB_PAUSED
	AND EXISTS (SELECT 1 FROM job_pauses WHERE job_pauses.job = jobs.id AND until <> 0 AND until <= :now)
RETURNING id, queue, uid, name

-- query runs_unhold_jobs(set json, hold int) -> id int
UPDATE runs SET hold = HOLD_NONE, reason = NULL
WHERE state = RUN_QUEUED AND hold = :hold AND hold <> 0 AND job = {ids}
RETURNING id

-- ======== events ========

-- Numbers from the sequence become visible in ascending order, because this lock is held from the first one to the commit.
-- query events_lock()
SELECT FROM meta WHERE key = 'events' FOR UPDATE

-- The number of an event: the base, the number of the transaction times 16384, and the place in the transaction. Without
-- a base it comes from the sequence. See 'order of events' in HACKING.
-- define events_base = (SELECT split_part(value, ' ', 1)::bigint FROM meta WHERE key = 'events_base')

-- define xid = pg_current_xact_id()::text::bigint

-- All transactions with lower numbers have ended, as far as this snapshot.
-- define xid_min = pg_snapshot_xmin(pg_current_snapshot())::text::bigint

-- Sets the base, unless a node of an earlier version is open or has just opened the store. All transactions that are
-- in progress get numbers above those of the sequence. Read under the lock.
-- query events_number(since int, server text)
INSERT INTO meta (key, value)
SELECT 'events_base', (SELECT coalesce(max(id), 0) FROM events) + 1 - {xid_min} * 16384 || ' ' || :server
WHERE NOT EXISTS (SELECT FROM nodes WHERE closed_at = 0 AND protocol < 2)
	AND NOT EXISTS (SELECT FROM writers WHERE at >= :since AND id NOT LIKE '2-3-%')
	AND {xid_min} BETWEEN 1 AND {xid}
ON CONFLICT (key) DO NOTHING

-- query events_numbered() -> n int
SELECT count(*) AS n FROM meta WHERE key = 'events_base'

-- query events_server() -> server text
SELECT system_identifier::text AS server FROM pg_control_system()

-- query events_server_known() -> known int
SELECT has_function_privilege('pg_control_system()', 'EXECUTE')::int::bigint AS known

-- Raises the base on a server whose transactions have lower numbers than those that wrote the events, and on another
-- server than before, because clients may have read numbers that the dump does not have. The room for these is an hour
-- of 10,000 transactions per second, and 1,000 per second since the newest event. This must be the first statement of
-- its transaction that writes: then all visible events are of transactions with lower numbers.
-- define other_server = (split_part(value, ' ', 2) <> '' AND :server <> '' AND split_part(value, ' ', 2) <> :server)

-- query events_raise(server text, now int)
UPDATE meta SET value = greatest(split_part(value, ' ', 1)::bigint, (SELECT coalesce(max(id), 0) FROM events) + 1 - {xid_min} * 16384)
	+ CASE WHEN {other_server}
		THEN 16384 * (36000000 + greatest(0, :now - (SELECT at FROM events WHERE id = (SELECT max(id) FROM events))) / 1000)
		ELSE 0 END || ' ' || CASE WHEN {other_server} THEN :server ELSE split_part(value, ' ', 2) END
WHERE key = 'events_base' AND ({other_server}
	OR split_part(value, ' ', 1)::bigint + {xid} * 16384 <= (SELECT coalesce(max(id), 0) FROM events))

-- 'n' is the place of the event in its slot. The first slot is that of the transaction. Slot 'part' is that of the
-- subtransaction which has last written the row of this writer.
-- query events_insert_numbered(set json, part int, writer text)
INSERT INTO events (id, at, uid, owner, who, origin, what, object, job, run, node, result, detail) OVERRIDING SYSTEM VALUE
SELECT CASE WHEN base IS NULL THEN nextval('events_id_seq') ELSE base + slot * 16384 + n END,
	at, uid, owner, who, origin, what, object, job, run, node, result, detail
FROM (SELECT {events_base} AS base, CASE WHEN :part = 0 THEN {xid} ELSE {xid} + ((SELECT xmin::text::bigint FROM writers WHERE id = :writer)
		- {xid} % 4294967296 + 4294967296) % 4294967296 END AS slot OFFSET 0) AS place
	CROSS JOIN jsonb_to_recordset(:set) AS given(n bigint, at bigint, uid bigint, owner bigint, who text, origin text, what text, object text,
		job bigint, run bigint, node text, result text, detail text)

-- The first number that a transaction in progress may still use, and the last one below it.
-- query events_frontier() -> until int, newest int
SELECT coalesce(base + xid_min * 16384, 9223372036854775807) AS until,
	coalesce(base + xid_min * 16384 - 1, (SELECT max(id) FROM events), 0) AS newest
FROM (SELECT {events_base} AS base, {xid_min} AS xid_min OFFSET 0) AS now

-- The first event that no reader may take yet.
-- query events_held() -> at int
SELECT at FROM events WHERE id >= (SELECT coalesce({events_base} + {xid_min} * 16384, 9223372036854775807)) ORDER BY id LIMIT 1

-- The oldest transaction that writes, of any database of the server.
-- query events_holder() -> holder text
SELECT holder FROM (SELECT 'process ' || pid || ' (database ' || coalesce(datname::text, '?') || ', user ' || coalesce(usename::text, '?') ||
		', ' || coalesce(nullif(application_name, ''), 'unnamed program') || ')' AS holder, age(backend_xid) AS age
	FROM pg_stat_activity WHERE backend_xid IS NOT NULL
	UNION ALL
	SELECT 'prepared transaction ' || gid, age(transaction) FROM pg_prepared_xacts) AS holders
ORDER BY age DESC LIMIT 1

-- query events_insert(set json)
INSERT INTO events (at, uid, owner, who, origin, what, object, job, run, node, result, detail)
SELECT at, uid, owner, who, origin, what, object, job, run, node, result, detail
FROM jsonb_to_recordset(:set) AS given(at bigint, uid bigint, owner bigint, who text, origin text, what text, object text, job bigint, run bigint,
	node text, result text, detail text)

-- ======== changes ========

-- query job_change_lock(id int, uid int) -> uid int, owner text, name text, state int, queue text, revision int,
--	created_at int, updated_at int, spec text, asked int, reason text
SELECT uid, owner, name, state, queue, revision, created_at, updated_at, spec, coalesce(asked, 0) AS asked, reason FROM jobs
WHERE id = :id AND (:uid < 0 OR uid = :uid) AND state <> JOB_REMOVED
FOR UPDATE

-- query due_lock(job int) -> slot int
SELECT slot FROM due WHERE job = :job
FOR UPDATE

-- Planned slots that are not due yet and have no attempt.
-- query runs_unplan(job int, now int) -> slot int, queue text, uid int, size int
DELETE FROM runs
WHERE job = :job AND ended_at = 0 AND state = RUN_QUEUED AND kind = RUN_KIND_SCHEDULE AND attempt = 0
	AND slot > :now AND due_at > :now
RETURNING slot, queue, uid, {run_size}

-- query runs_rewrite(job int, queue text, priority int, overlap int, overlap_waiting int, places int, deadline int,
--	expires int, gated int, notifies int)
UPDATE runs SET queue = :queue, priority = :priority, overlap = :overlap, overlap_waiting = :overlap_waiting,
	places = :places, deadline = :deadline, expires = :expires, gated = :gated, notifies = :notifies,
	hold = CASE WHEN hold = HOLD_PERMIT THEN HOLD_NONE ELSE hold END
WHERE job = :job AND ended_at = 0 AND state = RUN_QUEUED

-- Another live job of the owner of this job with that name.
-- query job_name_rival(job int, name text) -> id int
SELECT id FROM jobs WHERE uid = (SELECT given.uid FROM jobs AS given WHERE given.id = :job) AND name = :name AND state < JOB_FINISHED
	AND id <> :job

-- query counter_of_job(what int, job int) -> n int
SELECT coalesce(sum(n), 0)::bigint AS n FROM counters WHERE what = :what AND state = (SELECT uid FROM jobs WHERE id = :job)

-- Whether the current revision has a row, and the number and size of revisions below the current number minus 'less'.
-- query job_revisions_known(job int, less int) -> current int, old int, size int
SELECT EXISTS (SELECT 1 FROM job_revisions AS kept WHERE kept.job = jobs.id AND kept.revision = jobs.revision)::int::bigint AS current,
	past.old, past.size
FROM jobs CROSS JOIN LATERAL (SELECT count(*) AS old, coalesce(sum(each.size), 0)::bigint AS size
	FROM (SELECT {revision_size} FROM job_revisions WHERE job = jobs.id AND revision < jobs.revision - :less) AS each) AS past
WHERE jobs.id = :job

-- Fails if it finds another number of rows.
-- query revisions_trim_all(job int, before int, n int)
WITH done AS (DELETE FROM job_revisions WHERE job = :job AND revision < :before RETURNING revision)
SELECT FROM done HAVING 1 / (count(*) = :n)::int = 1

-- query pauses_of_job(job int) -> scope text, key text, uid int, by_uid int, by_name text, reason text, at int,
--	until int, spared text, later int
SELECT scope, key, uid, by_uid, by_name, reason, at, until, spared, later FROM pauses
WHERE uid < 0 OR uid = (SELECT jobs.uid FROM jobs WHERE jobs.id = :job) ORDER BY at, scope, key, uid

-- ======== notices ========

-- Creates the missing rows, one per job, and locks all of them until the commit.
-- query health_take(set json) -> job int, bad int, since int, slot int, last_success int, typical int
INSERT INTO job_health (job, bad, since, slot, last_success, typical)
SELECT value::bigint, HEALTH_GOOD, 0, 0, 0, 0 FROM jsonb_array_elements_text(:set) AS value ORDER BY 1
ON CONFLICT (job) DO UPDATE SET job = excluded.job
RETURNING job_health.job, job_health.bad, job_health.since, job_health.slot, job_health.last_success, job_health.typical

-- query health_put(set json)
UPDATE job_health SET bad = given.bad, since = given.since, slot = given.slot,
	last_success = given.last_success, typical = given.typical,
	success_at = greatest(job_health.success_at, given.success_at), failure_at = greatest(job_health.failure_at, given.failure_at),
	missed_at = greatest(job_health.missed_at, given.missed_at), took = CASE WHEN given.took > 0 THEN given.took ELSE job_health.took END
FROM jsonb_to_recordset(:set) AS given(job bigint, bad bigint, since bigint, slot bigint, last_success bigint,
	typical bigint, success_at bigint, failure_at bigint, missed_at bigint, took bigint)
WHERE job_health.job = given.job

-- One notice for each channel of the current definition.
-- query notices_insert(set json) -> id int
INSERT INTO notices (job, run, uid, what, channel, state, tries, created_at, due_at, done_at, detail)
SELECT given.job, given.run, jobs.uid, given.what, channels.channel, NOTICE_WAITING, 0, given.now, given.now, 0, given.detail
FROM jsonb_to_recordset(:set) AS given(job bigint, run bigint, what text, now bigint, detail text)
	JOIN jobs ON jobs.id = given.job
	CROSS JOIN LATERAL (SELECT channel FROM json_array_elements_text(jobs.spec::json -> 'notify') AS each(channel)
		WHERE given.what = 'test' OR (given.what = 'output') = (substr(channel, 1, 7) = 'output:') OFFSET 0) AS channels
ON CONFLICT DO NOTHING
RETURNING id

-- The first due notices of each of these owners.
-- query notices_due(set json, now int, n int) -> uid int, id int
SELECT due.uid, due.id
FROM jsonb_array_elements_text(:set) AS given CROSS JOIN LATERAL (SELECT first.uid, first.id, first.due_at
	FROM notices AS first
	WHERE first.state = NOTICE_WAITING AND first.uid = given.value::bigint AND first.due_at <= :now
	ORDER BY first.due_at, first.id LIMIT :n) AS due
ORDER BY due.due_at, due.id

-- query notices_take(node text, now int, again_at int, set json) -> id int
UPDATE notices SET tries = tries + 1, due_at = :again_at, node = :node
WHERE id IN (SELECT id FROM notices
	WHERE id = ANY (ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(:set) AS value))
		AND state = NOTICE_WAITING AND due_at <= :now
	FOR UPDATE SKIP LOCKED)
RETURNING id

-- Notices that earlier engines of this node were sending when they ended, except those in the set,
-- which are still being sent.
-- query notices_resume(name text, id text, now int, set json)
UPDATE notices SET due_at = :now
WHERE state = NOTICE_WAITING AND due_at > :now AND node <> :id
	AND node = ANY (ARRAY(SELECT nodes.id FROM nodes WHERE nodes.name = :name))
	AND notices.id NOT IN (SELECT value::bigint FROM jsonb_array_elements_text(:set) AS value)

-- query notice_done(id int, try int, untried int, state int, due_at int, now int, error text) -> uid int, job int, run int, channel text
UPDATE notices SET state = :state, due_at = :due_at, error = :error, node = NULL, tries = tries - :untried,
	done_at = CASE WHEN :state = NOTICE_WAITING THEN 0 ELSE :now END
WHERE id = :id AND tries = :try AND state + 0 = NOTICE_WAITING
RETURNING uid, job, run, channel

-- query notices_get(set json) -> {notice_row}
SELECT {notice_columns}
FROM notices LEFT JOIN jobs ON jobs.id = notices.job
WHERE notices.id = {ids}
ORDER BY notices.id

-- query notice_page_job(job int, before int, n int) -> {notice_row}
SELECT {notice_columns} FROM notices LEFT JOIN jobs ON jobs.id = notices.job + 0
WHERE notices.job = :job AND notices.id < :before ORDER BY notices.id DESC LIMIT :n

-- ======== nodes ========

-- A node that is opened a second time keeps the longer lease, because its engine may rely on it.
-- query node_insert(id text, name text, spawner text, host text, now int, ttl int, run_ttl int, labels text, barred int, boot text, machine text)
INSERT INTO nodes (id, name, spawner, host, opened_at, alive_until, runs_until, renewed_at, labels, barred, boot, machine, protocol)
VALUES (:id, :name, :spawner, :host, :now, {clock} + :ttl, {clock} + :run_ttl, {clock}, :labels, :barred, :boot, :machine, 2)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, protocol = excluded.protocol, spawner = excluded.spawner,
	host = excluded.host, guarded = 0, closed_at = 0, lost = 0, left_runs = NULL, renewed_at = excluded.renewed_at,
	runs_until = CASE WHEN nodes.closed_at = 0 THEN greatest(nodes.runs_until, excluded.runs_until) ELSE excluded.runs_until END,
	alive_until = CASE WHEN nodes.closed_at = 0 THEN greatest(nodes.alive_until, excluded.alive_until) ELSE excluded.alive_until END

-- The open nodes of this name. The row locks wait for their transactions in progress.
-- query nodes_named(name text) -> id text
SELECT id FROM nodes WHERE name = :name AND closed_at = 0 ORDER BY id FOR UPDATE

-- KEY SHARE is held until the commit. An engine that replaces this one or reaps its node waits for
-- it; a renewal does not.
-- query node_open(id text) -> spawner text, draining int
SELECT spawner, coalesce((SELECT draining FROM node_orders WHERE node_orders.name = nodes.name), 0) AS draining
FROM nodes WHERE id = :id AND closed_at = 0 AND alive_until > {clock} FOR KEY SHARE OF nodes

-- query nodes_all() -> id text, name text, host text, opened_at int, lease_remains int, runs_remain int, guarded int, skew int,
--	draining int, leads int, segments int, active int, labels text, barred int
SELECT nodes.id, nodes.name, nodes.host, nodes.opened_at, nodes.alive_until - {clock} AS lease_remains,
	nodes.runs_until - {clock} AS runs_remain, nodes.guarded, nodes.skew,
	coalesce(node_orders.draining, 0) AS draining,
	(SELECT count(*) FROM leases WHERE leases.name = 'leader' AND holder = nodes.id AND until > {clock}) AS leads,
	(SELECT count(*) FROM segments WHERE segments.holder = nodes.id) AS segments,
	(SELECT coalesce(sum(n), 0)::bigint FROM counters WHERE what = 3 AND counters.node = nodes.name) AS active,
	nodes.labels, nodes.barred
FROM nodes LEFT JOIN node_orders ON node_orders.name = nodes.name
WHERE nodes.closed_at = 0 ORDER BY nodes.name, nodes.id

-- The last engine of each node name that has no open engine.
-- query nodes_gone(lost_since int, left_since int) -> id text, name text, host text, opened_at int, closed_at int, lost int,
--	active int, labels text, draining int
SELECT last.id, last.name, last.host, last.opened_at, last.closed_at, last.lost,
	(SELECT coalesce(sum(n), 0)::bigint FROM counters WHERE what = 3 AND counters.node = last.name) AS active, last.labels,
	coalesce(node_orders.draining, 0) AS draining
FROM nodes AS last LEFT JOIN node_orders ON node_orders.name = last.name
WHERE last.closed_at > CASE WHEN node_orders.draining = 1 THEN 0 WHEN last.lost = 1 THEN :lost_since ELSE :left_since END
	AND NOT EXISTS (SELECT 1 FROM nodes AS later WHERE later.name = last.name AND later.id <> last.id
		AND (later.closed_at = 0 OR later.closed_at > last.closed_at
			OR (later.closed_at = last.closed_at AND later.opened_at > last.opened_at)))
ORDER BY last.name, last.id

-- The leader's clock was read before this statement waited for its turn, so it may be behind the end of the lease.
-- query node_lost(id text, now int)
UPDATE nodes SET closed_at = greatest(:now, runs_until), lost = 1 WHERE id = :id AND closed_at = 0

-- Dead nodes: the run lease is over, and the spawner has ended the runs that must not overlap. A
-- spawner without a deadline ends nothing, so such a node (guarded = 0) is given ':wait' more time.
-- query nodes_dead(id text, wait int) -> id text, name text
SELECT id, name FROM nodes
WHERE closed_at = 0 AND id <> :id
	AND greatest(runs_until, alive_until) + CASE WHEN guarded = 1 THEN 0 ELSE :wait END <= {clock}
ORDER BY id FOR UPDATE

-- define run_is_away = runs.state IN (RUN_CLAIMED, RUN_RUNNING) AND runs.state <> RUN_SUCCEEDED AND nodes.closed_at <> 0
--	AND (nodes.closed_at < :before
--		OR (nodes.left_runs IS NOT NULL AND nodes.guarded = 1 AND nodes.runs_until <= {clock})
--		OR (nodes.left_runs IS NOT NULL AND runs.id NOT IN (SELECT held.value::bigint FROM jsonb_array_elements_text(nodes.left_runs::jsonb) AS held(value))))

-- Whether nodes_dead or runs_away would find something; takes no locks.
-- query leader_look(id text, wait int, before int) -> found int
SELECT 1::bigint AS found WHERE EXISTS (SELECT 1 FROM nodes
		WHERE closed_at = 0 AND id <> :id AND greatest(runs_until, alive_until) + CASE WHEN guarded = 1 THEN 0 ELSE :wait END <= {clock})
	OR EXISTS (SELECT 1 FROM runs JOIN nodes ON nodes.id = runs.node WHERE {run_is_away})

-- Runs of closed nodes that can be taken over: runs that the spawner did not hold at once, other
-- runs when the run lease is over. If the spawner has no deadline, the node must have been closed
-- before ':before'.
-- query runs_away(before int) -> id int, uid int, queue text, name text
SELECT runs.id, runs.uid, runs.queue, nodes.name FROM runs JOIN nodes ON nodes.id = runs.node
WHERE {run_is_away}
ORDER BY runs.id FOR UPDATE OF runs

-- query node_runs(id text) -> id int, uid int, queue text
SELECT id, uid, queue FROM runs
WHERE state IN (RUN_CLAIMED, RUN_RUNNING) AND state <> RUN_SUCCEEDED AND node = :id
ORDER BY id FOR UPDATE

-- ======== the leader ========

-- query leader_get() -> holder text, name text, term int, remains int, worked int
SELECT leases.holder, nodes.name, leases.term, leases.until - {clock} AS remains,
	(SELECT value::bigint FROM meta WHERE key = 'led_at') AS worked
FROM leases LEFT JOIN nodes ON nodes.id = leases.holder WHERE leases.name = 'leader'

-- The facts that a node reads with the renewal of its lease. 'slot' is the first slot of all segments,
-- 'planner' the node that plans it.
-- query lease_facts(id text, name text) -> draining int, leader text, term int, remains int, worked int, others int, segments int, slot int, planner text
SELECT coalesce(orders.draining, 0) AS draining, leader.name AS leader,
	leases.term, leases.until - {clock} AS remains, (SELECT value::bigint FROM meta WHERE key = 'led_at') AS worked,
	(SELECT count(*) FROM nodes WHERE closed_at = 0 AND alive_until > {clock} AND id <> :id) AS others,
	(SELECT coalesce(bit_or(1::bigint << segment::int), 0) FROM segments WHERE holder = :id) AS segments,
	coalesce(first.slot, 0) AS slot, planner.name AS planner
FROM leases LEFT JOIN nodes AS leader ON leader.id = leases.holder LEFT JOIN node_orders AS orders ON orders.name = :name
LEFT JOIN (SELECT slot, segment FROM due ORDER BY slot LIMIT 1) AS first ON 1 = 1
LEFT JOIN segments ON segments.segment = first.segment LEFT JOIN nodes AS planner ON planner.id = segments.holder
WHERE leases.name = 'leader'

-- Takes the leader lease if it is free and no transaction of the former leader is in progress. SKIP
-- LOCKED does not wait for one, because the node lease that is renewed in the same transaction
-- could expire. A valid lease is not locked.
-- query leader_take(holder text, name text, ttl int) -> term int
UPDATE leases SET holder = :holder, term = term + 1, until = {clock} + :ttl
WHERE leases.name = ANY (ARRAY(SELECT name FROM leases WHERE name = 'leader' AND until <= {clock} FOR UPDATE SKIP LOCKED)) AND until <= {clock}
	AND EXISTS (SELECT 1 FROM nodes WHERE nodes.id = :holder AND nodes.closed_at = 0)
	AND NOT EXISTS (SELECT 1 FROM node_orders WHERE node_orders.name = :name AND draining = 1)
RETURNING term

-- query leader_hold(holder text, term int) -> term int
SELECT term FROM leases WHERE name = 'leader' AND holder = :holder AND term = :term AND until > {clock} FOR KEY SHARE

-- Locked until the commit: assigning a segment to another node waits.
-- query segments_hold(holder text) -> segment int
SELECT segment FROM segments WHERE holder = :holder ORDER BY segment FOR SHARE

-- Assigns the segments of earlier engines of a node to its new engine.
-- query segments_inherit(name text, id text)
UPDATE segments SET holder = :id, term = term + 1
WHERE holder = ANY (ARRAY(SELECT nodes.id FROM nodes WHERE nodes.name = :name AND nodes.id <> :id))

-- Frees the leader lease of earlier engines of this node; any node may take it.
-- query leader_vacate(name text, id text)
UPDATE leases SET holder = '', until = 0
WHERE leases.name = 'leader' AND holder = ANY (ARRAY(SELECT nodes.id FROM nodes WHERE nodes.name = :name AND nodes.id <> :id))

-- query segments_put(set json)
INSERT INTO segments (segment, holder, term) SELECT segment, node, 1 FROM jsonb_to_recordset(:set) AS given(segment bigint, node text)
ON CONFLICT (segment) DO UPDATE SET holder = excluded.holder, term = segments.term + 1

-- query node_held(name text, id text) -> id int, spawner text
SELECT id, spawner FROM runs
WHERE state IN (RUN_CLAIMED, RUN_RUNNING) AND state <> RUN_SUCCEEDED AND node <> :id
	AND node IN (SELECT nodes.id FROM nodes WHERE nodes.name = :name)
ORDER BY id FOR UPDATE

-- query runs_take_over(node text, set json)
UPDATE runs SET node = :node WHERE id = {ids}

-- ======== output relays between nodes ========

-- Notifies a single node.
-- query relay_tell(node text) -> told int
SELECT 1::bigint AS told FROM (SELECT pg_notify('jobsched', :node)) AS news

-- ======== retention ========

-- query runs_prune(set json) -> id int, state int, queue text, uid int, size int, dead_at int
DELETE FROM runs WHERE id = {ids} AND ended_at <> 0
RETURNING id, state, queue, uid, {run_size}, dead_at

-- query attempts_prune(set json) -> run int, number int, kept int, uid int
DELETE FROM attempts WHERE run = {ids}
RETURNING run, number, output_bytes - output_dropped AS kept,
	coalesce((SELECT runs.uid FROM runs WHERE runs.id = attempts.run), -1) AS uid

-- query outputs_prune(set json) -> uid int, size int
DELETE FROM outputs WHERE run = {ids}
RETURNING coalesce((SELECT runs.uid FROM runs WHERE runs.id = outputs.run), -1) AS uid, {tail_size}

-- query jobs_prune(set json) -> id int, state int, queue text, uid int, size int, dead_at int
DELETE FROM jobs WHERE id = {ids} AND state + 0 >= JOB_FINISHED
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.job = jobs.id)
RETURNING id, state, queue, uid, {job_size}, 0::bigint AS dead_at

-- query tags_prune(set json)
DELETE FROM job_tags WHERE job = {ids}

-- query revisions_prune(set json) -> uid int, size int
DELETE FROM job_revisions WHERE job = {ids}
RETURNING coalesce((SELECT jobs.uid FROM jobs WHERE jobs.id = job_revisions.job), -1) AS uid, {revision_size}

-- query job_pauses_prune(set json)
DELETE FROM job_pauses WHERE job = {ids}

-- query health_prune(set json)
DELETE FROM job_health WHERE job = {ids}

-- query buckets_prune(set json)
DELETE FROM buckets WHERE scope = 'job' AND key = ANY (ARRAY(SELECT value FROM jsonb_array_elements_text(:set) AS given(value)))

-- query notices_prune(set json) -> state int
DELETE FROM notices WHERE job = {ids}
RETURNING state

-- query kept_outputs(uid int, n int) -> run int, fence int, number int, kept int
SELECT attempts.run, attempts.fence, attempts.number, attempts.output_bytes - attempts.output_dropped AS kept
FROM attempts JOIN runs ON runs.id = attempts.run
WHERE attempts.output_bytes > attempts.output_dropped AND runs.uid = :uid ORDER BY attempts.run, attempts.fence LIMIT :n

-- query outputs_forget(set json)
UPDATE attempts SET output_dropped = attempts.output_bytes
FROM jsonb_to_recordset(:set) AS given(run bigint, fence bigint)
WHERE attempts.run = given.run AND attempts.fence = given.fence

-- query store_bytes() -> bytes int
SELECT 0::bigint AS bytes

-- ======== queues and limits ========

-- query limit_lock(scope text, key text) -> key text, running int, weight int, rate_n int, rate_per int, rate_burst int
SELECT key, running, weight, rate_n, rate_per, rate_burst FROM limits WHERE scope = :scope AND key = :key FOR UPDATE

-- Locks these limits, so that no other claim counts towards them.
-- query limits_hold(set json) -> scope text, key text
SELECT limits.scope, limits.key FROM jsonb_to_recordset(:set) AS given(scope text, key text)
	JOIN limits ON limits.scope = given.scope AND limits.key = given.key
FOR NO KEY UPDATE OF limits SKIP LOCKED

-- KEY SHARE waits for the removal of a queue, but not for a claim.
-- query queue_use(key text) -> key text
SELECT key FROM limits WHERE scope = 'queue' AND key = :key FOR KEY SHARE

-- query counters_in(what int) -> state int, queue text, n int
SELECT state, queue, sum(n)::bigint AS n FROM counters WHERE what = :what GROUP BY state, queue

-- query counter_in(what int, state int, queue text) -> n int
SELECT coalesce(sum(n), 0)::bigint AS n FROM counters WHERE what = :what AND state = :state AND queue = :queue

-- ======== check and restore ========

-- query check_outputs() -> state int, queue text, n int
SELECT runs.uid AS state, '' AS queue, sum(attempts.output_bytes - attempts.output_dropped)::bigint AS n
FROM attempts JOIN runs ON runs.id = attempts.run WHERE attempts.output_bytes > attempts.output_dropped GROUP BY runs.uid

-- query check_store() -> state int, queue text, n int
SELECT sized.uid AS state, '' AS queue, sum(sized.size)::bigint AS n FROM (
	SELECT uid, {job_size} FROM jobs
	UNION ALL SELECT (SELECT jobs.uid FROM jobs WHERE jobs.id = job_revisions.job) AS uid, {revision_size} FROM job_revisions
	UNION ALL SELECT uid, {template_size} FROM templates
	UNION ALL SELECT uid, {run_size} FROM runs
	UNION ALL SELECT (SELECT runs.uid FROM runs WHERE runs.id = outputs.run) AS uid, {tail_size} FROM outputs
	UNION ALL SELECT uid, {result_size} FROM results
	UNION ALL SELECT uid, {state_size} FROM run_states) AS sized
WHERE sized.uid IS NOT NULL GROUP BY sized.uid

-- ======== reading ========

-- define wanted = jsonb_array_elements_text(:set) WITH ORDINALITY AS wanted(value, place)

-- query runs_get(set json) -> {run_row}, node_name text
SELECT {run_columns}, {node_named}
FROM {wanted} JOIN runs ON runs.id = wanted.value::bigint LEFT JOIN jobs ON jobs.id = runs.job
ORDER BY wanted.place

-- query runs_get_claimed(set json) -> {run_row}, spec text, digest int, typical int
SELECT {run_columns}, jobs.spec, jobs.digest,
	CASE WHEN runs.notifies = 1 THEN (SELECT typical FROM job_health WHERE job_health.job = runs.job) END AS typical
FROM {wanted} JOIN runs ON runs.id = wanted.value::bigint LEFT JOIN jobs ON jobs.id = runs.job
ORDER BY wanted.place

-- query jobs_get(set json, uid int) -> id int, uid int, owner text, name text, state int, reason text,
--	revision int, segment int, queue text, priority int, spec text, digest int, created_at int, updated_at int,
--	queued_slot int, due_slot int, last_id int, last_state int, last_slot int, last_ended_at int,
--	last_exit_code int, last_term_signal int, pause_by int, pause_name text, pause_at int, pause_until int,
--	pause_reason text, pause_later int
SELECT jobs.id, jobs.uid, jobs.owner, jobs.name, jobs.state, jobs.reason, jobs.revision, jobs.segment,
	jobs.queue, jobs.priority, jobs.spec, jobs.digest, jobs.created_at, jobs.updated_at,
	(SELECT min(CASE WHEN attempt > 0 THEN due_at ELSE slot END) FROM (SELECT slot, due_at, attempt, state FROM runs
		WHERE runs.job = jobs.id AND runs.ended_at = 0 OFFSET 0) AS open
		WHERE open.state = RUN_QUEUED) AS queued_slot,
	due.slot AS due_slot, last.id AS last_id, last.state AS last_state, last.slot AS last_slot,
	last.ended_at AS last_ended_at, last.exit_code AS last_exit_code,
	last.term_signal AS last_term_signal,
	job_pauses.by_uid AS pause_by, job_pauses.by_name AS pause_name, job_pauses.at AS pause_at,
	job_pauses.until AS pause_until, job_pauses.reason AS pause_reason, job_pauses.later AS pause_later
FROM {wanted} JOIN jobs ON jobs.id = wanted.value::bigint
	LEFT JOIN due ON due.job = jobs.id
	LEFT JOIN job_pauses ON job_pauses.job = jobs.id
	LEFT JOIN LATERAL (SELECT * FROM runs WHERE runs.job = jobs.id AND runs.state <> RUN_QUEUED
		ORDER BY runs.slot DESC, runs.kind DESC LIMIT 1) AS last ON true
WHERE :uid < 0 OR jobs.uid = :uid
ORDER BY wanted.place

-- query jobs_waiting(set json) -> job int, id int, slot int, due_at int, hold int, attempt int, reason text
SELECT open.job, open.id, open.slot, open.due_at, open.hold, open.attempt, open.reason
FROM {wanted} JOIN LATERAL (SELECT * FROM (SELECT * FROM runs
		WHERE runs.job = wanted.value::bigint AND runs.ended_at = 0 OFFSET 0) AS mine
		WHERE mine.state = RUN_QUEUED ORDER BY mine.slot, mine.id LIMIT 1) AS open ON true

-- query job_find(name text, uid_low int, uid_high int) -> id int, uid int
SELECT id, uid FROM jobs
WHERE name = :name AND uid BETWEEN :uid_low AND :uid_high AND state <> JOB_REMOVED
ORDER BY uid, id DESC LIMIT 1

-- The jobs of a set, in its order.
-- query job_lines(set json) -> {job_line}
SELECT {job_line_columns} FROM {wanted} JOIN jobs ON jobs.id = wanted.value::bigint ORDER BY wanted.place

-- The sort keys of the jobs of a set.
-- query jobs_sort_keys(set json) -> {job_keys}
SELECT {job_key_columns}
FROM {wanted} JOIN jobs ON jobs.id = wanted.value::bigint
	LEFT JOIN due ON due.job = jobs.id
	LEFT JOIN LATERAL (SELECT * FROM (SELECT * FROM runs
		WHERE runs.job = jobs.id AND runs.ended_at = 0 OFFSET 0) AS mine
		WHERE mine.state = RUN_QUEUED ORDER BY mine.slot, mine.id LIMIT 1) AS queued ON true
	LEFT JOIN LATERAL (SELECT * FROM runs AS newest WHERE newest.job = jobs.id AND newest.state <> RUN_QUEUED
		ORDER BY newest.slot DESC, newest.kind DESC LIMIT 1) AS last ON true

-- The jobs of a set that have a tag.
-- query tag_jobs_of(key text, value text, set json) -> job int
SELECT tagged.job FROM {wanted_jobs} CROSS JOIN LATERAL (SELECT job_tags.job FROM job_tags
	WHERE job_tags.key = :key AND job_tags.value = :value AND job_tags.job = wanted.job OFFSET 0) AS tagged

-- query tag_key_jobs_of(key text, set json) -> job int
SELECT tagged.job FROM {wanted_jobs} CROSS JOIN LATERAL (SELECT job_tags.job FROM job_tags
	WHERE job_tags.key = :key AND job_tags.job = wanted.job OFFSET 0) AS tagged

-- The names of a range that match a pattern with '*' and '?'. Only the index is read.
-- query job_names_like(name text, id int, high text, high_id int, glob text, n int) -> id int, name text
SELECT id, name FROM jobs
WHERE (name, id) > (:name, :id) AND (name, id) <= (:high, :high_id)
	AND name LIKE (SELECT replace(replace(replace(:glob, '_', '!_'), '*', '%'), '?', '_')) ESCAPE '!'
ORDER BY name, id LIMIT :n

-- ======== lists of a state, owner, queue, tag or kind ========

-- The plans are made without the values of their parameters. With 'state = :state' the planner concludes from few distinct
-- values that each is frequent, and reads all rows in the order of their numbers to find those of a rare state. Rows that
-- are compared as a whole are in the order of the index that begins with the column, and of no other.

-- Names of the newest jobs of a user, for suggestions: up to 2000 of each state.
-- query job_names(uid int, n int) -> name text
SELECT name FROM (
	SELECT * FROM (SELECT id, name FROM jobs WHERE (uid, state) >= (:uid, JOB_ACTIVE) AND (uid, state) <= (:uid, JOB_ACTIVE)
		ORDER BY uid DESC, state DESC, id DESC LIMIT 2000) AS j0 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE (uid, state) >= (:uid, JOB_PAUSED) AND (uid, state) <= (:uid, JOB_PAUSED)
		ORDER BY uid DESC, state DESC, id DESC LIMIT 2000) AS j1 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE (uid, state) >= (:uid, JOB_SUSPENDED) AND (uid, state) <= (:uid, JOB_SUSPENDED)
		ORDER BY uid DESC, state DESC, id DESC LIMIT 2000) AS j2 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE (uid, state) >= (:uid, JOB_FINISHED) AND (uid, state) <= (:uid, JOB_FINISHED)
		ORDER BY uid DESC, state DESC, id DESC LIMIT 2000) AS j3 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE (uid, state) >= (:uid, JOB_CANCELLED) AND (uid, state) <= (:uid, JOB_CANCELLED)
		ORDER BY uid DESC, state DESC, id DESC LIMIT 2000) AS j4) AS newest
WHERE name IS NOT NULL ORDER BY id DESC LIMIT :n

-- query job_page_uid(uid int, state int, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (uid, state, id) > (:uid, :state, :after) AND (uid, state) <= (:uid, :state)
ORDER BY uid, state, id LIMIT :n

-- query job_page_uid_down(uid int, state int, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (uid, state, id) < (:uid, :state, :before) AND (uid, state) >= (:uid, :state)
ORDER BY uid DESC, state DESC, id DESC LIMIT :n

-- query job_page_owner(owner text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (owner, id) > (:owner, :after) AND owner <= :owner
ORDER BY owner, id LIMIT :n

-- query job_page_owner_down(owner text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (owner, id) < (:owner, :before) AND owner >= :owner
ORDER BY owner DESC, id DESC LIMIT :n

-- query job_page_state(state int, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (state, id) > (:state, :after) AND state <= :state
ORDER BY state, id LIMIT :n

-- query job_page_state_down(state int, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (state, id) < (:state, :before) AND state >= :state
ORDER BY state DESC, id DESC LIMIT :n

-- query job_page_queue(queue text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (queue, id) > (:queue, :after) AND queue <= :queue AND queue <> 'default'
ORDER BY queue, id LIMIT :n

-- query job_page_queue_down(queue text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE (queue, id) < (:queue, :before) AND queue >= :queue AND queue <> 'default'
ORDER BY queue DESC, id DESC LIMIT :n

-- query job_page_tag(tag_key text, value text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags JOIN jobs ON jobs.id = job_tags.job
WHERE job_tags.key = :tag_key AND (job_tags.value, job_tags.job) > (:value, :after) AND job_tags.value <= :value
ORDER BY job_tags.value, job_tags.job LIMIT :n

-- query job_page_tag_down(tag_key text, value text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags JOIN jobs ON jobs.id = job_tags.job
WHERE job_tags.key = :tag_key AND (job_tags.value, job_tags.job) < (:value, :before) AND job_tags.value >= :value
ORDER BY job_tags.value DESC, job_tags.job DESC LIMIT :n

-- query job_page_tag_key(tag_key text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags JOIN jobs ON jobs.id = job_tags.job
WHERE (job_tags.key, job_tags.job) > (:tag_key, :after) AND job_tags.key <= :tag_key
ORDER BY job_tags.key, job_tags.job LIMIT :n

-- query job_page_tag_key_down(tag_key text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags JOIN jobs ON jobs.id = job_tags.job
WHERE (job_tags.key, job_tags.job) < (:tag_key, :before) AND job_tags.key >= :tag_key
ORDER BY job_tags.key DESC, job_tags.job DESC LIMIT :n

-- query run_page_uid(uid int, since int, slot int, id int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE (uid, slot, id) < (:uid, :slot, :id) AND (uid, slot) >= (:uid, :since)
ORDER BY uid DESC, slot DESC, id DESC LIMIT :n

-- query run_page_state(state int, since int, slot int, id int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE (state, slot, id) < (:state, :slot, :id) AND (state, slot) >= (:state, :since) AND state <> RUN_SUCCEEDED
ORDER BY state DESC, slot DESC, id DESC LIMIT :n

-- query run_page_queue(queue text, since int, slot int, id int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE (queue, slot, id) < (:queue, :slot, :id) AND (queue, slot) >= (:queue, :since) AND queue <> 'default'
ORDER BY queue DESC, slot DESC, id DESC LIMIT :n

-- query events_after_owner(owner int, after int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE (owner, id) > (:owner, :after) AND owner <= :owner
ORDER BY owner, id LIMIT :n

-- query events_before_owner(owner int, before int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE (owner, id) < (:owner, :before) AND owner >= :owner
ORDER BY owner DESC, id DESC LIMIT :n

-- query events_after_what(what text, after int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE (what, id) > (:what, :after) AND what <= :what AND what <> 'job.add'
ORDER BY what, id LIMIT :n

-- query events_before_what(what text, before int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE (what, id) < (:what, :before) AND what >= :what AND what <> 'job.add'
ORDER BY what DESC, id DESC LIMIT :n

-- query events_after_owner_what(owner int, what text, after int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE owner = :owner AND (what, id) > (:what, :after) AND what <= :what AND what <> 'job.add'
ORDER BY what, id LIMIT :n

-- query events_before_owner_what(owner int, what text, before int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE owner = :owner AND (what, id) < (:what, :before) AND what >= :what AND what <> 'job.add'
ORDER BY what DESC, id DESC LIMIT :n

-- ======== metrics ========

-- query metric_jobs_tagged(key text, n int) -> id int, uid int, owner text, name text, queued_slot int,
--	due_slot int, success_at int, failure_at int, missed_at int, took int
SELECT jobs.id, jobs.uid, jobs.owner, jobs.name,
	(SELECT min(CASE WHEN queued.attempt > 0 THEN queued.due_at ELSE queued.slot END) FROM runs AS queued
		WHERE queued.job = jobs.id AND queued.ended_at = 0 AND queued.state = RUN_QUEUED) AS queued_slot,
	due.slot AS due_slot, coalesce(job_health.success_at, 0) AS success_at, coalesce(job_health.failure_at, 0) AS failure_at,
	coalesce(job_health.missed_at, 0) AS missed_at, coalesce(job_health.took, 0) AS took
FROM (SELECT job FROM job_tags WHERE key = :key ORDER BY job LIMIT :n) AS tagged JOIN jobs ON jobs.id = tagged.job
	LEFT JOIN due ON due.job = jobs.id LEFT JOIN job_health ON job_health.job = jobs.id
WHERE jobs.state < JOB_FINISHED
ORDER BY jobs.id

-- query metric_jobs_all(n int) -> id int, uid int, owner text, name text, queued_slot int,
--	due_slot int, success_at int, failure_at int, missed_at int, took int
SELECT listed.id, listed.uid, listed.owner, listed.name,
	(SELECT min(CASE WHEN queued.attempt > 0 THEN queued.due_at ELSE queued.slot END) FROM runs AS queued
		WHERE queued.job = listed.id AND queued.ended_at = 0 AND queued.state = RUN_QUEUED) AS queued_slot,
	due.slot AS due_slot, coalesce(job_health.success_at, 0) AS success_at, coalesce(job_health.failure_at, 0) AS failure_at,
	coalesce(job_health.missed_at, 0) AS missed_at, coalesce(job_health.took, 0) AS took
FROM (SELECT id, uid, owner, name FROM jobs WHERE state < JOB_FINISHED ORDER BY state, id LIMIT :n) AS listed
	LEFT JOIN due ON due.job = listed.id LEFT JOIN job_health ON job_health.job = listed.id
ORDER BY listed.id

-- ======== dead letters ========

-- query dead_lock(set json) -> id int, uid int, job int, state int, queue text, job_state int, job_name text
SELECT runs.id, runs.uid, runs.job, runs.state, runs.queue, coalesce(jobs.state, JOB_REMOVED) AS job_state, jobs.name AS job_name
FROM {wanted} JOIN runs ON runs.id = wanted.value::bigint LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.dead_at + 0 <> 0
ORDER BY runs.id FOR UPDATE OF runs

-- query job_reopen(id int, now int) -> uid int, queue text
UPDATE jobs SET state = JOB_ACTIVE, reason = NULL, updated_at = :now
WHERE id = :id AND state + 0 = JOB_FINISHED
	AND NOT EXISTS (SELECT 1 FROM jobs AS other
		WHERE other.uid = jobs.uid AND other.name = jobs.name AND other.state < JOB_FINISHED)
RETURNING uid, queue

-- query dead_retry(set json, reason text, now int)
UPDATE runs SET state = RUN_QUEUED, reason = :reason, due_at = :now, failures = 0, lost = 0, dead_at = 0, first_start = 0,
	claimed_at = 0, started_at = 0, ended_at = 0, exit_code = -1, term_signal = 0, node = NULL, cancel_asked = 0,
	hold = 0, deadline = 0, expires = 0
WHERE id = {ids} AND dead_at + 0 <> 0

-- query dead_purge(set json)
UPDATE runs SET dead_at = 0 WHERE id = {ids} AND dead_at + 0 <> 0
