-- SPDX-License-Identifier: Apache-2.0
-- Statements and migrations specific to SQLite. common.sql has those that both dialects share; see
-- generate.awk.
--
-- Times are microseconds UTC, 0 means none. There are no foreign keys: history outlives the rows it
-- refers to, and every write checks in its WHERE clause what it needs.

-- text setup
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA synchronous = FULL;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16384;
PRAGMA wal_autocheckpoint = 0;

-- text inspect
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA locking_mode = EXCLUSIVE;

-- text create
PRAGMA application_id = 0x6a6f6273;
PRAGMA journal_mode = WAL

-- text application_id
PRAGMA application_id

-- text journal_mode
PRAGMA journal_mode = WAL

-- text backup
VACUUM INTO ?1

-- text integrity_check
PRAGMA integrity_check(100)

-- text quick_check
PRAGMA quick_check(1)

-- text schema_version
SELECT value FROM meta WHERE key = 'schema'

-- text begin_write
BEGIN IMMEDIATE

-- text begin_read
BEGIN

-- text commit
COMMIT

-- text rollback
ROLLBACK

-- text savepoint
SAVEPOINT op

-- text release
RELEASE op

-- text rollback_to
ROLLBACK TO op; RELEASE op

-- The members that a set may have: given(:set) turns it into rows, as jsonb_to_recordset does on
-- PostgreSQL.
-- text given
CREATE TABLE given (asked, at, attempt, bad, before, boots, caught_up, content, cpu_system, cpu_user, dead_at, deadline, detail, digest, due_at,
	ended_at, error, exit_code, expires, failure_at, failures, fence, first_start, forced, full_at, gated, hold, id, io_read, io_written, job, key,
	kind, last_success, lost, max_rss, missed_at, n, name, node, notifies, now, object, origin, outcome, output_bytes,
	output_dropped, overlap, overlap_waiting, owner, params, pid, place, places, priority, queue, reason, result,
	revision, run, scope, segment, since, slot, slot_count, slot_last, spawner, spec, started_at, state,
	success_at, term_signal, took, typical, uid, value, what, who, whole HIDDEN)

-- migration 1
CREATE TABLE meta (
	key TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES
	('schema', '1'),
	('store_id', lower(hex(randomblob(16))));

CREATE TABLE writers (
	id TEXT NOT NULL PRIMARY KEY,
	batch INT NOT NULL,
	at INT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uid INT NOT NULL,
	owner TEXT NOT NULL,
	name TEXT,
	key TEXT,
	content INT, -- digest of what came with the key
	state INT NOT NULL,
	reason TEXT,
	revision INT NOT NULL,
	segment INT NOT NULL,
	queue TEXT NOT NULL,
	priority INT NOT NULL,
	boots INT NOT NULL,
	created_at INT NOT NULL,
	updated_at INT NOT NULL,
	removed_at INT NOT NULL DEFAULT 0,
	digest INT NOT NULL,
	spec TEXT NOT NULL
) STRICT;
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
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	job INT NOT NULL,
	PRIMARY KEY (key, value, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_tags_key ON job_tags (key, job);

CREATE TABLE job_revisions (
	job INT NOT NULL,
	revision INT NOT NULL,
	uid INT NOT NULL,
	at INT NOT NULL,
	what TEXT NOT NULL,
	spec TEXT NOT NULL,
	PRIMARY KEY (job, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE due (
	job INTEGER PRIMARY KEY,
	segment INT NOT NULL,
	slot INT NOT NULL
) STRICT;
CREATE INDEX due_slot ON due (slot, segment);

CREATE TABLE runs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	job INT NOT NULL,
	uid INT NOT NULL,
	kind INT NOT NULL,
	state INT NOT NULL,
	priority INT NOT NULL,
	slot INT NOT NULL,
	slot_last INT NOT NULL,
	slot_count INT NOT NULL,
	due_at INT NOT NULL,
	revision INT NOT NULL,
	attempt INT NOT NULL DEFAULT 0,
	lost INT NOT NULL DEFAULT 0,
	fence INT NOT NULL DEFAULT 0,
	cancel_asked INT NOT NULL DEFAULT 0,
	exit_code INT NOT NULL DEFAULT -1,
	term_signal INT NOT NULL DEFAULT 0,
	created_at INT NOT NULL,
	claimed_at INT NOT NULL DEFAULT 0,
	started_at INT NOT NULL DEFAULT 0,
	ended_at INT NOT NULL DEFAULT 0,
	dead_at INT NOT NULL DEFAULT 0,
	queue TEXT NOT NULL,
	reason TEXT,
	node TEXT,
	spawner TEXT,
	CHECK ((ended_at = 0) = (state <= RUN_RUNNING))
) STRICT;
CREATE UNIQUE INDEX runs_slot_once ON runs (job, slot, kind);
CREATE INDEX runs_slot ON runs (slot);
CREATE INDEX runs_uid ON runs (uid, slot);
CREATE INDEX runs_state ON runs (state, slot) WHERE state <> RUN_SUCCEEDED;
CREATE INDEX runs_due ON runs (priority, due_at) WHERE state = RUN_QUEUED;
CREATE INDEX runs_open ON runs (job) WHERE ended_at = 0;

CREATE TABLE attempts (
	run INT NOT NULL,
	fence INT NOT NULL,
	number INT NOT NULL,
	node TEXT,
	spawner TEXT,
	pid INT NOT NULL,
	started_at INT NOT NULL,
	ended_at INT NOT NULL,
	outcome INT NOT NULL,
	exit_code INT NOT NULL,
	term_signal INT NOT NULL,
	cpu_user INT NOT NULL,
	cpu_system INT NOT NULL,
	max_rss INT NOT NULL,
	output_bytes INT NOT NULL,
	output_dropped INT NOT NULL,
	error TEXT,
	PRIMARY KEY (run, fence)
) STRICT, WITHOUT ROWID;

CREATE TABLE outputs (
	run INT NOT NULL,
	fence INT NOT NULL,
	tail BLOB NOT NULL,
	PRIMARY KEY (run, fence)
) STRICT;

CREATE TABLE running_jobs (
	job INTEGER PRIMARY KEY,
	run INT NOT NULL
) STRICT;

CREATE TABLE nodes (
	id TEXT NOT NULL PRIMARY KEY,
	name TEXT NOT NULL,
	spawner TEXT NOT NULL,
	host TEXT NOT NULL,
	opened_at INT NOT NULL,
	alive_until INT NOT NULL,
	closed_at INT NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX nodes_name ON nodes (name);

CREATE TABLE boots (
	node TEXT NOT NULL,
	boot TEXT NOT NULL,
	at INT NOT NULL,
	PRIMARY KEY (node, boot)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
	name TEXT NOT NULL PRIMARY KEY,
	holder TEXT NOT NULL,
	term INT NOT NULL,
	until INT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE segments (
	segment INTEGER PRIMARY KEY,
	holder TEXT NOT NULL,
	term INT NOT NULL
) STRICT;

CREATE TABLE events (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	at INT NOT NULL,
	uid INT NOT NULL,
	what TEXT NOT NULL,
	job INT NOT NULL,
	run INT NOT NULL,
	node TEXT,
	detail TEXT
) STRICT;
CREATE INDEX events_job ON events (job, id);

CREATE TABLE counters (
	node TEXT NOT NULL,
	what INT NOT NULL,
	state INT NOT NULL,
	queue TEXT NOT NULL,
	n INT NOT NULL,
	PRIMARY KEY (what, state, queue, node)
) STRICT, WITHOUT ROWID;

-- migration 2
UPDATE meta SET value = '2' WHERE key = 'schema';

-- The start policy of a run (core/job/policy.h), what it waits for, and the history of its
-- attempts.
ALTER TABLE runs ADD COLUMN overlap INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN overlap_waiting INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN places INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN deadline INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN expires INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN gated INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN notifies INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN forced INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN hold INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN failures INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN first_start INT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN params TEXT; -- JSON, of a triggered run

-- A lane is the waiting runs of one queue, owner and priority. Runs that wait for a run of their
-- own job are on hold, outside the lane.
DROP INDEX runs_due;
CREATE INDEX runs_due ON runs (queue, uid, priority, due_at) WHERE state = RUN_QUEUED AND hold = 0;
CREATE INDEX runs_held ON runs (hold, job, slot) WHERE state = RUN_QUEUED AND hold <> 0;
-- These are few: runs that were released from a hold, postponed, or queued for a retry.
CREATE INDEX runs_released ON runs (job) WHERE state = RUN_QUEUED AND hold = 0 AND reason IS NOT NULL;
CREATE INDEX runs_dead ON runs (dead_at) WHERE dead_at <> 0;
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
	job INT NOT NULL,
	place INT NOT NULL,
	run INT NOT NULL,
	PRIMARY KEY (job, place)
) STRICT, WITHOUT ROWID;

-- A pause keeps all jobs or those of a queue, an owner or a tag from starting; for the jobs of one
-- uid, or of all (-1). A freeze has scope 'freeze' and may exempt a tag.
CREATE TABLE pauses (
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	uid INT NOT NULL,
	by_uid INT NOT NULL,
	by_name TEXT NOT NULL,
	reason TEXT,
	at INT NOT NULL,
	until INT NOT NULL, -- 0: until somebody ends it
	spared TEXT NOT NULL, -- KEY=VALUE, or empty
	PRIMARY KEY (scope, key, uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE job_pauses (
	job INTEGER PRIMARY KEY,
	by_uid INT NOT NULL,
	by_name TEXT NOT NULL,
	at INT NOT NULL,
	until INT NOT NULL -- 0: until somebody resumes it
) STRICT;
CREATE INDEX job_pauses_until ON job_pauses (until) WHERE until <> 0;

CREATE INDEX pauses_until ON pauses (until) WHERE until <> 0;
CREATE INDEX pauses_uid ON pauses (uid);
-- At boot, paused jobs are found too: their runs wait.
DROP INDEX jobs_boots;
CREATE INDEX jobs_boots ON jobs (id) WHERE boots = 1 AND state IN (JOB_ACTIVE, JOB_PAUSED);

-- Limits of queues ('queue', its name) and owners ('owner', the uid); 0 is no limit. A queue must
-- exist before a job can use it.
CREATE TABLE limits (
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	running INT NOT NULL,
	weight INT NOT NULL,
	rate_n INT NOT NULL,
	rate_per INT NOT NULL,
	rate_burst INT NOT NULL,
	PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
INSERT INTO limits (scope, key, running, weight, rate_n, rate_per, rate_burst) VALUES ('queue', 'default', 0, 100, 0, 0, 0);
-- The token bucket of a rate is stored as one point in time (policy_rate_take); scope 'queue',
-- 'owner' or 'job'.
CREATE TABLE buckets (
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	full_at INT NOT NULL,
	PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE templates (
	uid INT NOT NULL,
	name TEXT NOT NULL,
	owner TEXT NOT NULL,
	revision INT NOT NULL,
	params TEXT NOT NULL, -- JSON: what must and may be given
	spec TEXT NOT NULL,
	created_at INT NOT NULL,
	updated_at INT NOT NULL,
	PRIMARY KEY (uid, name)
) STRICT, WITHOUT ROWID;

-- Digest of the submitted definition, as long as the job is unchanged. Submitting the same
-- definition again changes nothing.
ALTER TABLE jobs ADD COLUMN asked INT;
-- The name of the user who made a revision, and the revision whose definition it restored (undo);
-- 0: none.
ALTER TABLE job_revisions ADD COLUMN who TEXT;
ALTER TABLE job_revisions ADD COLUMN origin INT NOT NULL DEFAULT 0;

-- Notices, one row per channel.
CREATE TABLE notices (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	job INT NOT NULL,
	run INT NOT NULL,
	uid INT NOT NULL,
	what TEXT NOT NULL,
	channel TEXT NOT NULL,
	state INT NOT NULL, -- NOTICE_…
	tries INT NOT NULL,
	created_at INT NOT NULL,
	due_at INT NOT NULL,
	done_at INT NOT NULL,
	node TEXT, -- the engine that is sending it
	detail TEXT, -- JSON
	error TEXT
) STRICT;
CREATE INDEX notices_due ON notices (due_at) WHERE state = NOTICE_WAITING;
CREATE INDEX notices_job ON notices (job, id);
CREATE INDEX notices_uid ON notices (uid, id);
CREATE INDEX notices_failed ON notices (id) WHERE state = NOTICE_FAILED;
CREATE INDEX notices_done ON notices (done_at) WHERE state <> NOTICE_WAITING;
CREATE UNIQUE INDEX notices_long ON notices (run, channel) WHERE what = 'long'; -- said once of a run
-- The health of jobs that notify. A change of state and an unusually long run are detected against
-- this row.
CREATE TABLE job_health (
	job INTEGER PRIMARY KEY,
	bad INT NOT NULL, -- HEALTH_…
	since INT NOT NULL,
	slot INT NOT NULL, -- the newest that was bad
	last_success INT NOT NULL, -- run, 0: none
	typical INT NOT NULL -- duration of successful runs, a moving mean; 0: unknown
) STRICT;

ALTER TABLE events ADD COLUMN who TEXT;
ALTER TABLE events ADD COLUMN origin TEXT;
ALTER TABLE events ADD COLUMN object TEXT;
ALTER TABLE events ADD COLUMN result TEXT;
-- The user who may see the event besides administrators: the owner of its job, or else the user who
-- caused it.
ALTER TABLE events ADD COLUMN owner INT NOT NULL DEFAULT -1;
CREATE INDEX events_owner ON events (owner, id);

-- migration 3
UPDATE meta SET value = '3' WHERE key = 'schema';

-- All users that ever owned a job. The columns 'uid' of other tables hold the owner's number: see
-- core/job/owner.h.
CREATE TABLE owners (
	number INTEGER PRIMARY KEY,
	uid INT NOT NULL,
	name TEXT NOT NULL,
	since INT NOT NULL,
	UNIQUE (uid, name)
) STRICT;
CREATE INDEX owners_name ON owners (name, since);
INSERT INTO owners (number, uid, name, since)
SELECT uid, uid, min(owner), min(created_at) FROM jobs GROUP BY uid;

-- Bytes counted by the control group of the run; -1: unknown.
ALTER TABLE attempts ADD COLUMN io_read INT NOT NULL DEFAULT -1;
ALTER TABLE attempts ADD COLUMN io_written INT NOT NULL DEFAULT -1;

-- Kept output is counted per owner (COUNT_OUTPUT).
DELETE FROM counters WHERE what = 4;
INSERT INTO counters (node, what, state, queue, n)
SELECT '', 4, runs.uid, '', sum(attempts.output_bytes - attempts.output_dropped)
FROM attempts JOIN runs ON runs.id = attempts.run WHERE attempts.output_bytes > attempts.output_dropped GROUP BY runs.uid;

-- migration 4
UPDATE meta SET value = '4' WHERE key = 'schema';

-- Whether the spawner ends non-overlapping runs when the lease is over (guarded), and the
-- difference between the clocks of node and store.
ALTER TABLE nodes ADD COLUMN guarded INT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN skew INT NOT NULL DEFAULT 0;
CREATE INDEX nodes_open ON nodes (id) WHERE closed_at = 0;

-- Commands of administrators to a node, by its name: start no new runs; give up the leader lease of
-- this term.
CREATE TABLE node_orders (
	name TEXT NOT NULL PRIMARY KEY,
	draining INT NOT NULL,
	resign_term INT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO leases (name, holder, term, until) VALUES ('leader', '', 0, 0);
INSERT INTO meta (key, value) VALUES ('events', '');

-- Runs with a requested cancellation, by the node that runs them.
CREATE INDEX runs_to_end ON runs (node) WHERE cancel_asked = 1 AND ended_at = 0;

-- migration 5
UPDATE meta SET value = '5' WHERE key = 'schema';

-- The labels of a node as in struct op_claim, and whether the node may never lead.
ALTER TABLE nodes ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN barred INT NOT NULL DEFAULT 0;

-- The boot ID of the machine that the node runs on; '': unknown.
ALTER TABLE nodes ADD COLUMN boot TEXT NOT NULL DEFAULT '';

-- When the leader last completed its work while other nodes were alive.
INSERT INTO meta (key, value) VALUES ('led_at', '0');

-- Requests of a node for output that another node keeps, and the parts that are ready to be read.
CREATE TABLE relays (
	id INTEGER PRIMARY KEY,
	reader TEXT NOT NULL, -- engines
	holder TEXT NOT NULL,
	run INT NOT NULL,
	attempt INT NOT NULL,
	start INT NOT NULL,
	tail INT NOT NULL,
	follow INT NOT NULL,
	taken INT NOT NULL,
	until INT NOT NULL
) STRICT;
CREATE INDEX relays_reader ON relays (reader);
CREATE INDEX relays_holder ON relays (holder);
CREATE TABLE relay_parts (
	relay INT NOT NULL,
	number INT NOT NULL,
	at INT NOT NULL,
	total INT NOT NULL,
	dropped INT NOT NULL,
	last INT NOT NULL,
	note TEXT,
	data TEXT NOT NULL, -- base64
	PRIMARY KEY (relay, number)
) STRICT;

-- migration 6
UPDATE meta SET value = '6' WHERE key = 'schema';

-- Whether the leader declared the node lost; 0: the node closed its row itself.
ALTER TABLE nodes ADD COLUMN lost INT NOT NULL DEFAULT 0;

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
ALTER TABLE runs ADD COLUMN caught_up INT NOT NULL DEFAULT 0;

-- Queued runs by the last moment at which they may start (claim_last_start, core/decide/claim.c).
CREATE INDEX runs_last_start ON runs ((slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END))
WHERE state = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0));

-- Pauses that are over, kept until every slot before their end is planned and decided. 'job' is 0
-- for a scope.
CREATE TABLE pauses_past (
	job INT NOT NULL,
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	uid INT NOT NULL,
	at INT NOT NULL,
	until INT NOT NULL,
	spared TEXT NOT NULL,
	PRIMARY KEY (job, scope, key, uid, at)
) STRICT, WITHOUT ROWID;

-- The end of the run lease, the time of the last renewal, and the ID of the machine that the node
-- runs on.
ALTER TABLE nodes ADD COLUMN runs_until INT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN renewed_at INT NOT NULL DEFAULT 0;
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
	SELECT uid, 1000 + length(CAST(spec AS BLOB)) AS size FROM jobs
	UNION ALL SELECT jobs.uid, 200 + length(CAST(job_revisions.spec AS BLOB)) FROM job_revisions JOIN jobs ON jobs.id = job_revisions.job
	UNION ALL SELECT uid, 200 + length(CAST(spec AS BLOB)) + length(CAST(params AS BLOB)) FROM templates
	UNION ALL SELECT uid, 400 + coalesce(length(CAST(params AS BLOB)), 0) FROM runs
	UNION ALL SELECT runs.uid, 50 + length(tail) FROM outputs JOIN runs ON runs.id = outputs.run) AS sized
GROUP BY sized.uid;

-- Finds removed jobs of an owner that is over its budget.
CREATE INDEX jobs_removed ON jobs (uid, id) WHERE state = JOB_REMOVED;

-- migration 11
UPDATE meta SET value = '11' WHERE key = 'schema';

-- A pause that was set in advance (later = 1) covers slots from 'at' on. The job of such a row is
-- active until 'at'; then it is paused with the reason of the row, and 'later' is set to 0.
ALTER TABLE pauses ADD COLUMN later INT NOT NULL DEFAULT 0;
ALTER TABLE job_pauses ADD COLUMN later INT NOT NULL DEFAULT 0;
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
CREATE INDEX runs_queue ON runs (queue, slot) WHERE queue <> 'default';
CREATE INDEX events_what ON events (what, id) WHERE what <> 'job.add';
CREATE INDEX events_run ON events (run, id) WHERE run <> 0;
CREATE INDEX events_owner_what ON events (owner, what, id) WHERE what <> 'job.add';
-- The first queued run of a job, for the list of jobs by their next run.
DROP INDEX runs_open;
CREATE INDEX runs_open ON runs (job, slot) WHERE ended_at = 0;

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
	kind INT NOT NULL,
	name TEXT,
	owner INT NOT NULL,
	owner_name TEXT NOT NULL,
	role INT NOT NULL,
	everyone INT NOT NULL,
	scope TEXT,
	hash TEXT NOT NULL,
	parent TEXT,
	created_by TEXT NOT NULL,
	created_at INT NOT NULL,
	expires_at INT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_name ON tokens (owner, name) WHERE kind = 0;
CREATE INDEX tokens_expiry ON tokens (expires_at) WHERE expires_at > 0;

-- migration 15
UPDATE meta SET value = '15' WHERE key = 'schema';

-- For metrics: when runs of the job last succeeded, failed and were missed (0: never), and how long
-- the last run took.
ALTER TABLE job_health ADD COLUMN success_at INT NOT NULL DEFAULT 0;
ALTER TABLE job_health ADD COLUMN failure_at INT NOT NULL DEFAULT 0;
ALTER TABLE job_health ADD COLUMN missed_at INT NOT NULL DEFAULT 0;
ALTER TABLE job_health ADD COLUMN took INT NOT NULL DEFAULT 0;
DELETE FROM counters WHERE what = 8;
INSERT INTO counters (node, what, state, queue, n) SELECT '', 8, 0, '', count(*) FROM runs WHERE dead_at <> 0 HAVING count(*) > 0;

-- migration 16
UPDATE meta SET value = '16' WHERE key = 'schema';

-- Runs that a node has started or ended, at most one row per 100 ms and node; 'runs' is a
-- JSON array of their ids. The event streams of the other nodes read them. Old rows are deleted.
CREATE TABLE run_moves (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	node TEXT NOT NULL,
	runs TEXT NOT NULL
) STRICT;

-- The last progress that the command of a run reported; 'fence' names the attempt.
CREATE TABLE run_progress (
	run INTEGER PRIMARY KEY,
	fence INT NOT NULL,
	percent INT NOT NULL, -- -1: not given
	text TEXT NOT NULL,
	at INT NOT NULL
) STRICT;

-- migration 17
UPDATE meta SET value = '17' WHERE key = 'schema';

-- The jobs that a job runs after: 'parent' is the name or number of a job of the same owner, 'link'
-- the text of the definition, 'mode' an enum chain_mode.
CREATE TABLE chains (
	child INT NOT NULL,
	link TEXT NOT NULL,
	uid INT NOT NULL,
	parent TEXT NOT NULL,
	mode INT NOT NULL,
	PRIMARY KEY (child, link)
) STRICT, WITHOUT ROWID;
CREATE INDEX chains_parent ON chains (uid, parent, child);

-- migration 18
UPDATE meta SET value = '18' WHERE key = 'schema';

-- The results of a run: those of its last attempt (core/job/result.h). 'uid' and 'slot' are those of the run.
CREATE TABLE results (
	run INT NOT NULL,
	key TEXT NOT NULL,
	value TEXT NOT NULL,
	uid INT NOT NULL,
	slot INT NOT NULL,
	PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX results_value ON results (key, value, slot, run);

-- migration 19
UPDATE meta SET value = '19' WHERE key = 'schema';

-- The content of the directory that the attempts of a run share (--state-size), at the end of the
-- attempt 'fence': an archive, as base64 in parts. The last part is marked; without it the rest is being written.
CREATE TABLE run_states (
	run INT NOT NULL,
	fence INT NOT NULL,
	part INT NOT NULL,
	last INT NOT NULL,
	uid INT NOT NULL,
	data TEXT NOT NULL,
	PRIMARY KEY (run, fence, part)
) STRICT;

-- migration 20
UPDATE meta SET value = '20' WHERE key = 'schema';

-- Nodes of versions before this one write 1.
ALTER TABLE nodes ADD COLUMN protocol INT NOT NULL DEFAULT 1;

-- The bytes that a row counts towards its owner's quota, as in owner_quota.c.
-- define job_size = (1000 + length(CAST(spec AS BLOB))) AS size

-- define revision_size = (200 + length(CAST(spec AS BLOB))) AS size

-- define template_size = (200 + length(CAST(spec AS BLOB)) + length(CAST(params AS BLOB))) AS size

-- define run_size = (400 + coalesce(length(CAST(params AS BLOB)), 0)) AS size

-- define tail_size = (50 + length(tail)) AS size

-- define state_size = (100 + length(data)) AS size

-- define result_size = (100 + length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))) AS size

-- The clock of leases is the time since boot of the host, which never steps. A reboot voids all
-- leases (leases_void).
-- define clock = lease_clock()

-- Without statistics SQLite prefers an index of all jobs to a partial index of a few.
-- define boot_rows = jobs INDEXED BY jobs_boots

-- define applied_rows = jobs INDEXED BY jobs_applied

-- The first queued run of the job of a run, and whether a job has a queued run. The last run of the job of a run, as in
-- jobs_get, and whether a job has one.
-- define first_queued = (SELECT mine.id FROM runs AS mine INDEXED BY runs_open
--	WHERE mine.job = runs.job AND mine.ended_at = 0 AND mine.state = RUN_QUEUED ORDER BY mine.slot, mine.id LIMIT 1)

-- define has_queued = EXISTS (SELECT 1 FROM runs AS mine INDEXED BY runs_open
--	WHERE mine.job = jobs.id AND mine.ended_at = 0 AND mine.state = RUN_QUEUED)

-- define has_slot = EXISTS (SELECT 1 FROM due WHERE due.job = jobs.id AND due.slot < 9223372036854775807)

-- define last_run = (SELECT newest.id FROM runs AS newest
--	WHERE newest.job = runs.job AND newest.slot >= runs.slot AND +newest.state <> RUN_QUEUED ORDER BY newest.slot DESC, newest.kind DESC LIMIT 1)

-- define has_run = EXISTS (SELECT 1 FROM runs AS newest WHERE newest.job = jobs.id AND +newest.state <> RUN_QUEUED)

-- Whether the segment of a row of 'due' is in the mask :segments.
-- define in_segments = (:segments >> due.segment) & 1 = 1

-- ======== the store itself ========

-- query writer_get(id text) -> batch int
SELECT batch FROM writers WHERE id = :id

-- query writer_close(id text, before int)
DELETE FROM writers WHERE id = :id OR at < :before

-- query counters_add(node text, set json)
INSERT INTO counters (node, what, state, queue, n)
SELECT :node, what, state, queue, n
FROM given(:set) WHERE true
ON CONFLICT (what, state, queue, node) DO UPDATE SET n = counters.n + excluded.n

-- query counters_sum(what int) -> state int, n int
SELECT state, sum(n) AS n FROM counters WHERE what = :what GROUP BY state

-- query counter_get(what int, state int) -> n int
SELECT coalesce(sum(n), 0) AS n FROM counters WHERE what = :what AND state = :state

-- Settings that make a commit unsafe against a crash of the machine.
-- query unsafe_settings() -> name text
SELECT 'synchronous' AS name FROM pragma_synchronous WHERE synchronous = 0

-- ======== owners ========

-- query owner_add(uid int, name text, now int)
INSERT INTO owners (number, uid, name, since)
SELECT :uid + 4294967296 * (SELECT count(*) FROM owners WHERE uid = :uid), :uid, :name, :now WHERE true
ON CONFLICT DO NOTHING

-- ======== jobs ========

-- The first number; the others follow it.
-- query job_ids(n int) -> id int
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0) + 1 AS id WHERE :n > 0

-- query jobs_insert(set json) -> id int
INSERT INTO jobs (id, uid, owner, name, key, content, asked, state, revision, segment, queue, priority,
	boots, created_at, updated_at, digest, spec)
SELECT id, uid, owner, name, key, content, asked, state, 1, segment, queue, priority, boots, now, now, digest, spec
FROM given(:set) WHERE true
ON CONFLICT DO NOTHING
RETURNING id

-- The jobs of an owner with these names, without cancelled and removed ones.
-- query jobs_named(set json, uid int) -> id int, uid int, owner text, name text, state int, revision int,
--	created_at int, updated_at int, asked int, applied_set text, spec text
SELECT jobs.id, jobs.uid, jobs.owner, jobs.name, jobs.state, jobs.revision, jobs.created_at, jobs.updated_at,
	coalesce(jobs.asked, 0) AS asked, jobs.applied_set, jobs.spec
FROM json_each(:set) AS wanted CROSS JOIN jobs
WHERE jobs.uid = :uid AND jobs.name = wanted.value AND +jobs.state < JOB_CANCELLED
ORDER BY jobs.id

-- query applied_put(set json, applied_set text)
UPDATE jobs SET applied_set = :applied_set WHERE id IN (SELECT value FROM json_each(:set))

-- query jobs_insert_new(set json)
INSERT INTO jobs (id, uid, owner, name, key, content, asked, state, revision, segment, queue, priority,
	boots, created_at, updated_at, digest, spec)
SELECT id, uid, owner, name, key, content, asked, state, 1, segment, queue, priority, boots, now, now, digest, spec
FROM given(:set)

-- Which of the given names and keys are taken.
-- query jobs_taken(set json) -> place int
SELECT given.id AS place FROM given(:set) AS given
WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.uid = given.uid AND jobs.name = given.name AND jobs.state < JOB_FINISHED)
	OR EXISTS (SELECT 1 FROM jobs WHERE jobs.uid = given.uid AND jobs.key = given.key)

-- Locks of rows exist on a server only (ops/batch.c).
-- query owners_lock(owners json, jobs json)
DELETE FROM meta WHERE key = '' AND :owners = :jobs

-- query tags_insert(set json)
INSERT INTO job_tags (key, value, job)
SELECT key, value, job FROM given(:set) WHERE true
ON CONFLICT DO NOTHING

-- query names_paused(set json, now int) -> place int, job int, uid int, by_uid int, by_name text, at int, until int,
--	reason text, later int
SELECT given.id AS place, jobs.id AS job, jobs.uid AS uid, job_pauses.by_uid AS by_uid, job_pauses.by_name AS by_name,
	job_pauses.at AS at, job_pauses.until AS until, coalesce(job_pauses.reason, jobs.reason) AS reason,
	job_pauses.later AS later
FROM given(:set) AS given
	CROSS JOIN jobs ON jobs.uid = given.uid AND jobs.name = given.name AND jobs.state = JOB_CANCELLED
	CROSS JOIN job_pauses ON job_pauses.job = jobs.id
WHERE job_pauses.until = 0 OR job_pauses.until > :now

-- query job_lock(id int, uid int) -> uid int, name text, state int, queue text
SELECT uid, name, state, queue FROM jobs
WHERE id = :id AND (:uid < 0 OR uid = :uid) AND state <> JOB_REMOVED

-- query jobs_suspend(set json, was int, now int) -> id int, uid int, queue text, name text, reason text
UPDATE jobs SET state = JOB_SUSPENDED, updated_at = :now, reason = given.reason
FROM given(:set) AS given
WHERE jobs.id = given.job AND +jobs.state = :was
RETURNING id, uid, queue, name, jobs.reason

-- query jobs_idle(set json) -> id int
SELECT id FROM jobs
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = JOB_ACTIVE
	AND NOT EXISTS (SELECT 1 FROM due WHERE due.job = jobs.id)
ORDER BY id

-- query jobs_finish(set json, now int) -> id int, uid int, queue text
UPDATE jobs SET state = JOB_FINISHED, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = JOB_ACTIVE
	AND NOT EXISTS (SELECT 1 FROM due WHERE due.job = jobs.id)
	AND NOT EXISTS (SELECT 1 FROM runs INDEXED BY runs_open
		WHERE runs.job = jobs.id AND runs.ended_at = 0)
RETURNING id, uid, queue

-- ======== the schedule ========

-- query due_crowds(set json, n int) -> slot int, jobs int
SELECT given.value AS slot, (SELECT count(*) FROM (SELECT 1 FROM due WHERE slot = given.value LIMIT :n)) AS jobs
FROM json_each(:set) AS given

-- query due_insert(set json)
INSERT INTO due (job, segment, slot)
SELECT job, segment, slot FROM given(:set)

-- query due_take(since int, until int, n int, segments int) -> job int, slot int
SELECT due.job, due.slot FROM due
WHERE due.slot > :since AND due.slot <= :until AND {in_segments}
ORDER BY due.slot LIMIT :n

-- 'slot' is for servers, where it may have changed since due_take; 0: it has not.
-- query due_jobs(set json) -> id int, uid int, revision int, priority int, queue text, name text, owner text, spec text,
--	digest int, created_at int, slot int
SELECT jobs.id, jobs.uid, jobs.revision, jobs.priority, jobs.queue, jobs.name, jobs.owner, jobs.spec, jobs.digest,
	jobs.created_at, 0 AS slot
FROM json_each(:set) AS wanted CROSS JOIN jobs WHERE jobs.id = wanted.value
ORDER BY wanted.key

-- query due_hold(since int, until int, n int, current int, segments int) -> stored int
SELECT 0 AS stored WHERE 0 AND :since = 0 AND :until = 0 AND :n = 0 AND :current = 0 AND :segments = 0

-- query due_held(until int) -> id int, slot int, uid int, revision int, priority int, queue text, name text, owner text, spec text,
--	digest int, created_at int, slot_now int
SELECT jobs.id, 0 AS slot, jobs.uid, jobs.revision, jobs.priority, jobs.queue, jobs.name, jobs.owner, jobs.spec, jobs.digest,
	jobs.created_at, 0 AS slot_now
FROM jobs WHERE jobs.id = 0 AND :until = 0

-- query due_move(set json)
UPDATE due SET slot = given.slot
FROM given(:set) AS given
WHERE due.job = given.job

-- query due_drop(set json)
DELETE FROM due WHERE job IN (SELECT value FROM json_each(:set))

-- The slot of a cancelled run may still be in the future and is not planned a second time.
-- query ends_facts(set json) -> id int, state int, uid int, queue text, due int, others int, waiting int
SELECT id, state, uid, queue, 0 AS due, 0 AS others, 0 AS waiting FROM jobs WHERE id = 0 AND :set = ''

-- query jobs_finish_all(set json, now int, n int)
UPDATE jobs SET state = JOB_FINISHED, updated_at = :now WHERE id = 0 AND :set = '' AND :n = 0

-- query due_resume(set json, never int, at int)
UPDATE due SET slot = max(:at, coalesce((SELECT max(slot) FROM runs WHERE runs.job = due.job), 0) - 1)
WHERE job IN (SELECT value FROM json_each(:set)) AND +slot = :never
	AND NOT EXISTS (SELECT 1 FROM runs INDEXED BY runs_open
		WHERE runs.job = due.job AND runs.ended_at = 0)

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
	(SELECT slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END FROM runs INDEXED BY runs_last_start
		WHERE state = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0))
		ORDER BY slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END LIMIT 1) AS expiry

-- ======== runs ========

-- The first number; the others follow it.
-- query run_ids(n int) -> id int
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0) + 1 AS id WHERE :n > 0

-- query runs_insert(set json) -> id int, state int, queue text, due_at int, uid int, size int, job int, slot_last int,
--	ended_at int, reason text, notifies int, slot_count int
INSERT INTO runs (id, job, uid, kind, state, reason, slot, slot_last, slot_count, due_at, revision,
	priority, queue, created_at, ended_at, overlap, overlap_waiting, places, deadline, expires, gated, notifies,
	forced, caught_up, params)
SELECT id, job, uid, kind, state, reason, slot, slot_last, slot_count, due_at, revision, priority, queue,
	now, CASE WHEN state = RUN_QUEUED THEN 0 ELSE now END, overlap, overlap_waiting, places, deadline, expires, gated,
	notifies, forced, caught_up, params
FROM given(:set) WHERE true
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
FROM given(:set) WHERE true

-- Skips from lane to lane in the index, independent of the number of runs in them. SQLite uses the
-- index for all columns of a row comparison only if the right side has no type affinity, hence the
-- plus signs. It also reads the rows that are equal, hence a due time that no run has.
-- query lanes() -> queue text, uid int, priority int, due_at int
WITH RECURSIVE lane(id) AS (
	SELECT id FROM (SELECT id FROM runs INDEXED BY runs_due WHERE state = RUN_QUEUED AND hold = 0
		ORDER BY queue, uid, priority, due_at LIMIT 1)
	UNION ALL
	SELECT (SELECT next.id FROM runs AS next INDEXED BY runs_due
		WHERE next.state = RUN_QUEUED AND next.hold = 0
			AND (next.queue, next.uid, next.priority, next.due_at)
				> (+here.queue, +here.uid, +here.priority, 9223372036854775807)
		ORDER BY next.queue, next.uid, next.priority, next.due_at LIMIT 1)
	FROM lane CROSS JOIN runs AS here WHERE here.id = lane.id)
SELECT queue, uid, priority, due_at FROM lane CROSS JOIN runs WHERE runs.id = lane.id

-- The facts about a queued run and its job that a claim decides by.
-- define lane_facts = runs.id, runs.job, runs.kind, runs.attempt, runs.slot, runs.due_at, runs.reason, runs.overlap,
--	runs.overlap_waiting, runs.places, runs.deadline, runs.expires, runs.gated, runs.forced,
--	coalesce(jobs.state, JOB_REMOVED) AS job_state,
--	CASE WHEN jobs.state = JOB_PAUSED THEN (SELECT at FROM job_pauses WHERE job_pauses.job = runs.job)
--		WHEN jobs.state = JOB_ACTIVE AND :stops <> 0
--		THEN (SELECT at FROM job_pauses WHERE job_pauses.job = runs.job AND later = 1) END AS paused_at,
--	CASE WHEN jobs.state = JOB_PAUSED
--		THEN (SELECT until FROM job_pauses WHERE job_pauses.job = runs.job) END AS paused_until,
--	CASE WHEN :stops <> 0
--		THEN (SELECT count(*) FROM pauses_past WHERE pauses_past.job = runs.job
--			AND pauses_past.at <= runs.slot AND pauses_past.until > runs.slot) END AS paused_then,
--	CASE WHEN jobs.state = JOB_PAUSED OR :stops <> 0
--		THEN (SELECT count(*) FROM due WHERE due.job = runs.job) END AS recurs,
--	CASE WHEN runs.places > 0
--		THEN (SELECT count(*) FROM running_jobs WHERE running_jobs.job = runs.job) END AS taken,
--	CASE WHEN runs.places > 0
--		THEN (SELECT place FROM running_jobs WHERE running_jobs.job = runs.job AND running_jobs.run = runs.id)
--		END AS place,
--	CASE WHEN runs.reason = 'rate' AND EXISTS (SELECT 1 FROM runs AS newer WHERE newer.job = runs.job
--		AND newer.slot > runs.slot AND newer.slot <= :now AND newer.kind = RUN_KIND_SCHEDULE) THEN 1 END AS overtaken,
--	runs.caught_up, runs.created_at

-- query lane_runs(queue text, uid int, priority int, due_at int, id int, n int, stops int, now int, labels text) -> id int, job int,
--	kind int, attempt int, slot int, due_at int, reason text, overlap int, overlap_waiting int, places int, deadline int,
--	expires int, gated int, forced int, job_state int, paused_at int, paused_until int, paused_then int, recurs int, taken int,
--	place int, overtaken int, caught_up int, created_at int
SELECT {lane_facts}
FROM runs INDEXED BY runs_due LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.state = RUN_QUEUED AND runs.hold = 0 AND runs.queue = :queue AND runs.uid = :uid
	AND runs.priority = :priority AND (runs.due_at, runs.id) > (:due_at, :id)
	AND (runs.gated & 2 = 0 OR NOT EXISTS (SELECT 1 FROM json_each(jobs.spec, '$.node_labels') AS need
		WHERE instr(:labels, char(10) || need.value || char(10)) = 0))
ORDER BY runs.due_at, runs.id LIMIT :n

-- query lane_hold(queue text, uid int, priority int, due_at int, id int, n int, now int, labels text, segments int, window int, old int) ->
--	id int, due_at int, passed int, rest int, stored int
SELECT :id AS id, 0 AS due_at, 0 AS passed, :now AS rest, 0 AS stored
WHERE 0 AND :queue = '' AND :uid = 0 AND :priority = 0 AND :due_at = 0 AND :n = 0 AND :labels = '' AND :segments = 0 AND :window = 0 AND :old = 0

-- query lane_held(stops int, now int, queue text, uid int, priority int, labels text) -> id int, job int,
--	kind int, attempt int, slot int, due_at int, reason text, overlap int, overlap_waiting int, places int, deadline int,
--	expires int, gated int, forced int, job_state int, paused_at int, paused_until int, paused_then int, recurs int, taken int,
--	place int, overtaken int, caught_up int, created_at int
SELECT {lane_facts} FROM runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.id = 0 AND :queue = '' AND :uid = 0 AND :priority = 0 AND :labels = ''

-- query lane_rows() -> {run_row}, spec text, digest int, typical int, revision_now int
SELECT {run_columns}, jobs.spec, jobs.digest, 0 AS typical, runs.revision AS revision_now
FROM runs LEFT JOIN jobs ON jobs.id = runs.job WHERE runs.id = 0

-- query runs_claim_all(node text, spawner text, now int, set json, n int)
UPDATE runs SET state = RUN_CLAIMED, node = :node, spawner = :spawner, claimed_at = :now
WHERE id = 0 AND :set = '' AND :n = 0

-- query permits_put(set json)
INSERT INTO running_jobs (job, place, run)
SELECT value ->> 'job', value ->> 'place', value ->> 'run' FROM json_each(:set)

-- query runs_claim(node text, spawner text, now int, set json) -> id int, uid int, queue text
UPDATE runs SET state = RUN_CLAIMED, node = :node, spawner = :spawner, fence = fence + 1, claimed_at = :now,
	revision = coalesce((SELECT jobs.revision FROM jobs WHERE jobs.id = runs.job), revision), reason = NULL
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = RUN_QUEUED
RETURNING id, uid, queue

-- query runs_settle(set json, now int) -> id int, job int, uid int, queue text, state int, fence int,
--	slot_last int, reason text, notifies int
UPDATE runs SET state = given.state, reason = given.reason, ended_at = :now, hold = HOLD_NONE
FROM given(:set) AS given
WHERE runs.id = given.run AND +runs.state = RUN_QUEUED
RETURNING id, job, uid, queue, state, fence, runs.slot_last, runs.reason, runs.notifies

-- Queued runs whose last possible start has passed.
-- query runs_too_late(now int, n int) -> id int, uid int, queue text, slot int, due_at int, attempt int, deadline int, expires int, reason text
SELECT id, uid, queue, slot, due_at, attempt, deadline, expires, reason FROM runs INDEXED BY runs_last_start
WHERE state = RUN_QUEUED AND (expires > 0 OR (deadline > 0 AND attempt = 0))
	AND slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END < :now
ORDER BY slot + CASE WHEN attempt = 0 AND deadline > 0 AND (expires = 0 OR deadline <= expires) THEN deadline ELSE expires END LIMIT :n

-- query runs_expired_hold(now int, n int) -> stored int
SELECT 0 AS stored WHERE 0 AND :now = 0 AND :n = 0

-- query runs_expired(now int) -> id int, uid int, queue text, slot int, due_at int, attempt int, deadline int, expires int, reason text
SELECT id, uid, queue, slot, due_at, attempt, deadline, expires, reason FROM runs WHERE id = 0 AND :now = 0

-- query runs_put_off(set json)
UPDATE runs SET hold = given.hold, due_at = given.due_at, reason = given.reason
FROM given(:set) AS given
WHERE runs.id = given.run AND +runs.state = RUN_QUEUED

-- query runs_replace(set json)
UPDATE runs SET cancel_asked = 1, reason = 'replaced'
WHERE id IN (SELECT value FROM json_each(:set)) AND +state IN (RUN_CLAIMED, RUN_RUNNING)

-- Runs that wait for a permit of these jobs.
-- query permits_awaiting(set json) -> id int
SELECT runs.id FROM json_each(:set) AS wanted CROSS JOIN runs INDEXED BY runs_held
WHERE runs.state = RUN_QUEUED AND runs.hold <> 0 AND runs.hold = HOLD_PERMIT AND runs.job = wanted.value

-- query permits_awaited(set json) -> job int, n int
SELECT wanted.value AS job, (SELECT count(*) FROM runs INDEXED BY runs_held WHERE runs.state = RUN_QUEUED
	AND runs.hold <> 0 AND runs.hold = HOLD_PERMIT AND runs.job = wanted.value) AS n
FROM json_each(:set) AS wanted

-- Queued slots without an attempt that are older than the given slot of their job.
-- query runs_older(set json) -> id int
SELECT runs.id FROM given(:set) AS given CROSS JOIN runs INDEXED BY runs_open
WHERE runs.job = given.job AND runs.ended_at = 0 AND runs.state = RUN_QUEUED AND runs.kind = RUN_KIND_SCHEDULE
	AND runs.attempt = 0 AND runs.slot < given.slot

-- The number of free permits of these jobs: neither in use nor reserved for a run that was released
-- before.
-- query permits_room(set json) -> job int, n int
SELECT held.job, held.places - (SELECT count(*) FROM running_jobs WHERE running_jobs.job = held.job)
	- (SELECT count(*) FROM runs INDEXED BY runs_released WHERE runs.job = held.job AND runs.state = RUN_QUEUED
		AND runs.hold = 0 AND runs.reason IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM running_jobs WHERE running_jobs.job = runs.job
			AND running_jobs.run = runs.id)) AS n
FROM json_each(:set) AS wanted CROSS JOIN runs AS held
WHERE held.id =
	(SELECT waits.id FROM runs AS waits INDEXED BY runs_held WHERE waits.state = RUN_QUEUED AND waits.hold <> 0
		AND waits.hold = HOLD_PERMIT AND waits.job = wanted.value ORDER BY waits.slot LIMIT 1)

-- Releases the first run of each job that waits for a permit.
-- query permits_release(set json) -> id int, due_at int
UPDATE runs SET hold = HOLD_NONE
WHERE id IN (SELECT (SELECT held.id FROM runs AS held INDEXED BY runs_held
	WHERE held.state = RUN_QUEUED AND held.hold <> 0 AND held.hold = HOLD_PERMIT AND held.job = wanted.value
	ORDER BY held.slot LIMIT 1) FROM json_each(:set) AS wanted)
RETURNING id, due_at

-- SQLite has no round trips to save, so these statements are not used.
-- query job_open_runs(job int, now int) -> id int, uid int, state int, hold int, slot int, queue text, planned int, size int
SELECT id, uid, state, hold, slot, queue, 0 AS planned, {run_size} FROM runs WHERE id = 0 AND :job = 0 AND :now = 0

-- query job_active_runs(job int) -> {run_row}, node_name text
SELECT {run_columns}, {node_named} FROM runs LEFT JOIN jobs ON jobs.id = runs.job WHERE runs.id = 0 AND :job = 0

-- query runs_unplan_all(job int, now int, n int)
DELETE FROM runs WHERE id = 0 AND :job = 0 AND :now = 0 AND :n = 0

-- query runs_cancel_all(set json, reason text, now int, n int)
UPDATE runs SET state = RUN_CANCELLED, reason = :reason, ended_at = :now WHERE id = 0 AND :set = '' AND :n = 0

-- query runs_unhold_all(set json, hold int, n int)
UPDATE runs SET hold = HOLD_NONE WHERE id = 0 AND :set = '' AND :hold = 0 AND :n = 0

-- ======== permits, limits, pauses ========

-- SQLite has one writer at a time and locks no rows.
-- query writers_exclude()
DELETE FROM meta WHERE key = ''

-- query writers_share()
DELETE FROM meta WHERE key = ''

-- query writers_wait()
DELETE FROM meta WHERE key = ''

-- query writer_enter(id text)
DELETE FROM meta WHERE key = '' AND value = :id

-- query batch_jobs_lock(jobs json, runs json)
DELETE FROM meta WHERE key = '' AND :jobs = :runs

-- query moves_prune(keep int)
DELETE FROM run_moves WHERE id < (SELECT max(newest.id) FROM run_moves AS newest) - :keep

-- query permits_of(set json) -> job int, place int, run int
SELECT job, place, run FROM running_jobs WHERE job IN (SELECT value FROM json_each(:set)) ORDER BY job, place

-- query permits_lock(set json) -> job int, place int, run int
SELECT job, place, run FROM running_jobs WHERE job IN (SELECT value FROM json_each(:set)) ORDER BY job, place

-- query permits_insert(set json, place int) -> run int
INSERT INTO running_jobs (job, place, run)
SELECT job, :place, id FROM runs WHERE id IN (SELECT value FROM json_each(:set))
ON CONFLICT DO NOTHING
RETURNING run

-- query permits_free(set json)
DELETE FROM running_jobs
WHERE job IN (SELECT value FROM json_each(:set))
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = running_jobs.run AND runs.ended_at = 0)

-- query active_now(what int, node text) -> uid int, queue text, n int, here int
SELECT state AS uid, queue, sum(n) AS n, sum(CASE WHEN node = :node THEN n ELSE 0 END) AS here
FROM counters WHERE what = :what GROUP BY state, queue

-- query buckets_put(set json)
INSERT INTO buckets (scope, key, full_at) SELECT scope, key, full_at FROM given(:set) WHERE true
ON CONFLICT (scope, key) DO UPDATE SET full_at = excluded.full_at

-- Pauses in force, and past pauses, which still decide about slots inside them. Past pauses of
-- single jobs and their pauses set in advance are read with each run (lane_runs); here one row
-- tells that there are any.
-- query pauses_now() -> scope text, key text, uid int, spared text, at int, until int, past int, later int
SELECT scope, key, uid, spared, at, until, 0 AS past, later FROM pauses
UNION ALL
SELECT scope, key, uid, spared, at, until, 1 AS past, 0 AS later FROM pauses_past WHERE job = 0
UNION ALL
SELECT * FROM (SELECT scope, key, uid, spared, at, until, 1 AS past, 0 AS later FROM pauses_past WHERE job > 0 LIMIT 1) AS single
UNION ALL
SELECT * FROM (SELECT 'job' AS scope, '' AS key, -1 AS uid, '' AS spared, at, until, 1 AS past, later FROM job_pauses WHERE later = 1
	ORDER BY at LIMIT 1) AS ordered

-- query job_pauses_keep(set json, now int)
INSERT INTO pauses_past (job, scope, key, uid, at, until, spared)
SELECT job, 'job', '', -1, at, CASE WHEN until = 0 OR until > :now THEN :now ELSE until END, '' FROM job_pauses
WHERE job IN (SELECT value FROM json_each(:set)) AND (later = 0 OR at < :now)
ON CONFLICT DO NOTHING

-- Queued slots inside a pause without an attempt, of jobs that have further slots.
-- query runs_inside_jobs(set json) -> id int
SELECT inside.id FROM given(:set) AS given CROSS JOIN runs AS inside INDEXED BY runs_open
WHERE inside.job = given.job AND inside.ended_at = 0 AND inside.state = RUN_QUEUED AND inside.kind = RUN_KIND_SCHEDULE
	AND inside.attempt = 0 AND inside.slot >= given.since AND inside.slot < given.before
	AND EXISTS (SELECT 1 FROM due WHERE due.job = given.job)

-- query runs_inside(since int, before int, uid int, queue text) -> id int, job int
SELECT id, job FROM runs INDEXED BY runs_state
WHERE state = RUN_QUEUED AND state <> RUN_SUCCEEDED AND slot >= :since AND slot < :before AND kind = RUN_KIND_SCHEDULE
	AND attempt = 0 AND (:uid < 0 OR uid = :uid) AND (:queue = '' OR queue = :queue)
	AND EXISTS (SELECT 1 FROM due WHERE due.job = runs.job)

-- query jobs_gated(set json) -> id int, uid int, owner text, spec text, digest int, full_at int
SELECT jobs.id, jobs.uid, jobs.owner, jobs.spec, jobs.digest, buckets.full_at
FROM json_each(:set) AS wanted CROSS JOIN jobs LEFT JOIN buckets ON buckets.scope = 'job'
	AND buckets.key = CAST(jobs.id AS TEXT)
WHERE jobs.id = wanted.value

-- query jobs_tagged(set json, key text, value text) -> job int
SELECT job FROM json_each(:set) AS wanted CROSS JOIN job_tags
WHERE job_tags.key = :key AND job_tags.value = :value AND job_tags.job = wanted.value

-- query jobs_tagged_key(set json, key text) -> job int
SELECT job FROM json_each(:set) AS wanted CROSS JOIN job_tags
WHERE job_tags.key = :key AND job_tags.job = wanted.value

-- ======== run progress ========

-- query runs_started(set json) -> id int, queue text
UPDATE runs SET state = RUN_RUNNING, started_at = given.at,
	first_start = CASE WHEN runs.first_start = 0 THEN given.at ELSE runs.first_start END,
	attempt = max(runs.attempt, given.attempt)
FROM given(:set) AS given
WHERE runs.id = given.run AND runs.fence = given.fence AND runs.node = given.node
	AND +runs.state = RUN_CLAIMED
RETURNING id, queue

-- query runs_lock(set json) -> id int, job int, uid int, state int, fence int, node text, queue text,
--	reason text, cancel_asked int, job_state int, slot_last int, notifies int, chained int, slot int
SELECT runs.id, runs.job, runs.uid, runs.state, runs.fence, runs.node, runs.queue, runs.reason, runs.cancel_asked,
	coalesce((SELECT state FROM jobs WHERE jobs.id = runs.job), JOB_REMOVED) AS job_state,
	runs.slot_last, runs.notifies,
	EXISTS (SELECT 1 FROM jobs CROSS JOIN chains WHERE jobs.id = runs.job AND chains.uid = runs.uid
		AND chains.parent IN (jobs.name, CAST(jobs.id AS TEXT))) AS chained, runs.slot
FROM json_each(:set) AS wanted CROSS JOIN runs WHERE runs.id = wanted.value

-- query runs_end(set json)
UPDATE runs SET state = given.state, reason = given.reason,
	attempt = max(runs.attempt, given.attempt), lost = runs.lost + given.lost,
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
FROM given(:set) AS given
WHERE runs.id = given.run AND +runs.state IN (RUN_CLAIMED, RUN_RUNNING)

-- query run_give_back(id int, fence int, node text, due_at int) -> id int, queue text
UPDATE runs SET state = RUN_QUEUED, node = NULL, spawner = NULL, claimed_at = 0, due_at = :due_at
WHERE id = :id AND fence = :fence AND node = :node AND +state = RUN_CLAIMED
	AND cancel_asked = 0
RETURNING id, queue

-- query runs_cancel_queued(set json, reason text, now int) -> id int, queue text
UPDATE runs SET state = RUN_CANCELLED, reason = :reason, ended_at = :now, hold = HOLD_NONE
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = RUN_QUEUED
RETURNING id, queue

-- query run_job_lock(id int) -> job int
SELECT job FROM runs WHERE id = :id

-- query runs_ask_cancel(set json)
UPDATE runs SET cancel_asked = 1
WHERE id IN (SELECT value FROM json_each(:set)) AND +state IN (RUN_CLAIMED, RUN_RUNNING)

-- query runs_open_of(job int) -> id int, state int
SELECT id, state FROM runs INDEXED BY runs_open WHERE job = :job AND ended_at = 0 ORDER BY id

-- ======== attempts ========

-- The last attempt of each run.
-- query attempts_last(set json) -> run int, outcome int, exit_code int, term_signal int, error text, node_name text
SELECT attempts.run, attempts.outcome, attempts.exit_code, attempts.term_signal, attempts.error,
	(SELECT nodes.name FROM nodes WHERE nodes.id = attempts.node) AS node_name
FROM json_each(:set) AS wanted CROSS JOIN attempts
WHERE attempts.run = wanted.value AND attempts.fence = (SELECT max(other.fence) FROM attempts AS other WHERE other.run = wanted.value)

-- query runs_started_all(set json, n int)
UPDATE runs SET state = RUN_RUNNING WHERE id = 0 AND :set = '' AND :n = 0

-- query attempts_started(set json)
INSERT INTO attempts (run, fence, number, node, spawner, pid, started_at, ended_at, outcome,
	exit_code, term_signal, cpu_user, cpu_system, max_rss, output_bytes, output_dropped)
SELECT run, fence, attempt, node, spawner, pid, at, 0, ATTEMPT_RUNNING, -1, 0, 0, 0, 0, 0, 0
FROM given(:set) WHERE true
ON CONFLICT DO NOTHING

-- query attempts_ended(set json)
INSERT INTO attempts (run, fence, number, node, spawner, pid, started_at, ended_at, outcome,
	exit_code, term_signal, cpu_user, cpu_system, max_rss, io_read, io_written, output_bytes, output_dropped, error)
SELECT run, fence, attempt, node, spawner, pid, started_at, ended_at, outcome, exit_code, term_signal,
	cpu_user, cpu_system, max_rss, io_read, io_written, output_bytes, output_dropped, error
FROM given(:set) WHERE true
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
SELECT run, fence, CAST(value AS BLOB) FROM given(:set) WHERE true
ON CONFLICT DO NOTHING
RETURNING coalesce((SELECT runs.uid FROM runs WHERE runs.id = outputs.run), -1) AS uid, {tail_size}

-- query output_get(run int, fence int) -> tail text
SELECT CAST(tail AS TEXT) AS tail FROM outputs WHERE run = :run AND fence = :fence

-- ======== chains ========

-- query chains_insert(set json)
INSERT INTO chains (child, link, uid, parent, mode) SELECT job, value, uid, name, n FROM given(:set) WHERE true ON CONFLICT DO NOTHING

-- query chains_prune(set json)
DELETE FROM chains WHERE child IN (SELECT value FROM json_each(:set))

-- The jobs that run after the jobs of a set, in ascending order.
-- query chain_children(set json) -> run int, child int, uid int, revision int, priority int, queue text, spec text, mode int,
--	link text
SELECT given.run, jobs.id AS child, jobs.uid, jobs.revision, jobs.priority, jobs.queue, jobs.spec, chains.mode, chains.link
FROM given(:set) AS given CROSS JOIN jobs AS parent CROSS JOIN chains CROSS JOIN jobs
WHERE parent.id = given.job AND chains.uid = parent.uid AND chains.parent IN (parent.name, CAST(parent.id AS TEXT))
	AND jobs.id = chains.child AND jobs.state IN (JOB_ACTIVE, JOB_PAUSED)
ORDER BY jobs.id

-- The links of a job, with the runs of each parent that have the slot.
-- query chain_parents(child int, slot int) -> link text, state int, exit_code int
SELECT chains.link, coalesce(runs.state, RUN_QUEUED) AS state, coalesce(runs.exit_code, -1) AS exit_code
FROM chains LEFT JOIN runs ON runs.slot = :slot AND runs.job = coalesce(
	(SELECT jobs.id FROM jobs WHERE jobs.uid = chains.uid AND jobs.name = chains.parent ORDER BY jobs.id DESC LIMIT 1),
	CASE WHEN chains.parent NOT GLOB '*[^0-9]*' THEN CAST(chains.parent AS INT) END)
WHERE chains.child = :child ORDER BY chains.link

-- The jobs of a set, given by name or number, and all jobs that they run after. 'job' is 0 if there
-- is no such live job.
-- query chain_ancestors(uid int, set json) -> ref text, job int, direct int
WITH RECURSIVE up(ref, job, direct) AS (
	SELECT name, coalesce((SELECT jobs.id FROM jobs WHERE jobs.uid = :uid AND jobs.state < JOB_FINISHED
		AND jobs.name = given.name), (SELECT jobs.id FROM jobs WHERE jobs.uid = :uid AND +jobs.state < JOB_FINISHED
		AND jobs.id = CASE WHEN given.name NOT GLOB '*[^0-9]*' THEN CAST(given.name AS INT) END), 0), 1
	FROM given(:set) AS given
	UNION
	SELECT chains.parent, coalesce((SELECT jobs.id FROM jobs WHERE jobs.uid = :uid AND jobs.state < JOB_FINISHED
		AND jobs.name = chains.parent), CASE WHEN chains.parent NOT GLOB '*[^0-9]*' THEN CAST(chains.parent AS INT) ELSE 0 END), 0
	FROM up CROSS JOIN chains WHERE chains.child = up.job)
SELECT ref, job, direct FROM up

-- The links of the jobs of a set to their parents, and to their children. 'parent' is 0 if there is no such job.
-- query chain_links_up(set json, n int) -> parent int, child int, link text
SELECT coalesce((SELECT jobs.id FROM jobs WHERE jobs.uid = chains.uid AND jobs.name = chains.parent ORDER BY jobs.id DESC LIMIT 1),
	(SELECT jobs.id FROM jobs WHERE jobs.uid = chains.uid AND jobs.id = CASE WHEN chains.parent NOT GLOB '*[^0-9]*'
		THEN CAST(chains.parent AS INT) END), 0) AS parent, chains.child, chains.link
FROM json_each(:set) AS wanted CROSS JOIN chains WHERE chains.child = wanted.value ORDER BY chains.child, chains.link LIMIT :n

-- query chain_links_down(set json, n int) -> parent int, child int, link text
SELECT parent.id AS parent, chains.child, chains.link
FROM json_each(:set) AS wanted CROSS JOIN jobs AS parent CROSS JOIN chains CROSS JOIN jobs
WHERE parent.id = wanted.value AND chains.uid = parent.uid AND chains.parent IN (parent.name, CAST(parent.id AS TEXT))
	AND jobs.id = chains.child AND jobs.state < JOB_CANCELLED
ORDER BY parent.id, chains.child, chains.link LIMIT :n

-- ======== progress ========

-- query progress_put(set json) -> run int, job int, uid int
INSERT INTO run_progress (run, fence, percent, text, at)
SELECT given.run, given.fence, given.n, given.value, given.at
FROM given(:set) AS given CROSS JOIN runs WHERE runs.id = given.run AND runs.fence = given.fence
ON CONFLICT (run) DO UPDATE SET fence = excluded.fence, percent = excluded.percent, text = excluded.text, at = excluded.at
RETURNING run, (SELECT runs.job FROM runs WHERE runs.id = run_progress.run) AS job,
	(SELECT runs.uid FROM runs WHERE runs.id = run_progress.run) AS uid

-- The usual duration is the mean of the successful runs among the newest 20 of the job.
-- query progress_get(set json) -> run int, percent int, text text, at int, started_at int, usual int
SELECT runs.id AS run, coalesce(run_progress.percent, -1) AS percent, run_progress.text, coalesce(run_progress.at, 0) AS at,
	runs.started_at, coalesce((SELECT CAST(avg(newest.ended_at - newest.started_at) AS INT)
		FROM (SELECT mine.started_at, mine.ended_at, mine.state FROM runs AS mine WHERE mine.job = runs.job
			ORDER BY mine.slot DESC LIMIT 20) AS newest
		WHERE newest.state = RUN_SUCCEEDED), 0) AS usual
FROM json_each(:set) AS wanted CROSS JOIN runs
	LEFT JOIN run_progress ON run_progress.run = runs.id AND run_progress.fence = runs.fence
WHERE runs.id = wanted.value

-- query progress_prune(set json)
DELETE FROM run_progress WHERE run IN (SELECT value FROM json_each(:set))

-- ======== results ========

-- query results_put(set json)
INSERT INTO results (run, key, value, uid, slot) SELECT run, key, value, uid, slot FROM given(:set) WHERE true ON CONFLICT DO NOTHING

-- query run_states_prune(set json) -> uid int, size int
DELETE FROM run_states WHERE run IN (SELECT value FROM json_each(:set))
	AND coalesce((SELECT runs.ended_at FROM runs WHERE runs.id = run_states.run), 1) <> 0
RETURNING uid, {state_size}

-- query results_prune(set json) -> uid int, size int
DELETE FROM results WHERE run IN (SELECT value FROM json_each(:set)) RETURNING uid, {result_size}

-- query results_get(set json) -> run int, key text, value text
SELECT results.run, results.key, results.value FROM json_each(:set) AS wanted CROSS JOIN results
WHERE results.run = wanted.value ORDER BY results.run, results.key

-- ======== after downtime or a clock change ========

-- The last time at which an engine was known to be active: it created the newest run, or it closed
-- its node.
-- query last_seen() -> at int
SELECT max(coalesce((SELECT created_at FROM runs WHERE id = (SELECT max(id) FROM runs)), 0),
	coalesce((SELECT max(closed_at) FROM nodes), 0)) AS at

-- query runs_late(since int, until int, after int, n int) -> id int, job int, slot int, name text, revision int,
--	spec text, created_at int, due_slot int
SELECT runs.id, runs.job, runs.slot, jobs.name, jobs.revision, jobs.spec, jobs.created_at,
	coalesce(due.slot, 0) AS due_slot
FROM runs INDEXED BY runs_state CROSS JOIN jobs ON jobs.id = runs.job LEFT JOIN due ON due.job = runs.job
WHERE runs.state = RUN_QUEUED AND runs.state <> RUN_SUCCEEDED AND runs.slot > :since AND runs.slot <= :until
	AND runs.due_at <= :until AND runs.kind = RUN_KIND_SCHEDULE AND runs.fence = 0 AND runs.hold = 0
	AND runs.job > :after
ORDER BY runs.job, runs.slot LIMIT :n

-- query runs_miss(set json, now int) -> id int, queue text, job int, slot_last int, notifies int
UPDATE runs SET state = RUN_SKIPPED, reason = 'missed', ended_at = :now
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = RUN_QUEUED
RETURNING id, queue, job, slot_last, notifies

-- query runs_catch_up(set json)
UPDATE runs SET caught_up = 1 WHERE id IN (SELECT value FROM json_each(:set)) AND +state = RUN_QUEUED

-- query due_undo(set json, after int, never int, at int)
UPDATE due SET slot = :at
WHERE (slot > :after AND slot < :never) OR job IN (SELECT value FROM json_each(:set))

-- ======== pauses ========

-- query job_control(id int, uid int) -> uid int, owner text, name text, state int, reason text, queue text,
--	revision int, priority int, created_at int, spec text, digest int
SELECT uid, owner, name, state, reason, queue, revision, priority, created_at, spec, digest FROM jobs
WHERE id = :id AND (:uid < 0 OR uid = :uid) AND state <> JOB_REMOVED

-- query job_pauses_put(set json, until int)
INSERT INTO job_pauses (job, by_uid, by_name, at, until)
SELECT job, uid, owner, now, :until FROM given(:set) WHERE true
ON CONFLICT (job) DO UPDATE SET by_uid = excluded.by_uid, by_name = excluded.by_name, at = excluded.at,
	until = excluded.until, reason = NULL, later = 0

-- query jobs_pause_due(set json, now int) -> id int, queue text, uid int, name text, reason text
UPDATE jobs SET state = JOB_PAUSED, updated_at = :now,
	reason = (SELECT job_pauses.reason FROM job_pauses WHERE job_pauses.job = jobs.id)
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = JOB_ACTIVE
	AND EXISTS (SELECT 1 FROM job_pauses WHERE job_pauses.job = jobs.id AND later = 1 AND at <= :now)
RETURNING id, queue, uid, name, reason

-- query job_pauses_begin(set json, now int)
UPDATE job_pauses SET later = 0 WHERE job IN (SELECT value FROM json_each(:set)) AND later = 1 AND at <= :now

-- query job_pauses_drop(set json)
DELETE FROM job_pauses WHERE job IN (SELECT value FROM json_each(:set))

-- query job_pauses_end(set json, now int)
DELETE FROM job_pauses WHERE job IN (SELECT value FROM json_each(:set)) AND until <> 0 AND until <= :now

-- query jobs_lock(set json) -> id int
SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(:set)) ORDER BY id

-- query jobs_unpause(set json, now int) -> id int, queue text, uid int, name text
UPDATE jobs SET state = JOB_ACTIVE, reason = NULL, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = JOB_PAUSED
	AND EXISTS (SELECT 1 FROM job_pauses WHERE job_pauses.job = jobs.id AND until <> 0 AND until <= :now)
RETURNING id, queue, uid, name

-- query runs_unhold_jobs(set json, hold int) -> id int
UPDATE runs SET hold = HOLD_NONE, reason = NULL
WHERE state = RUN_QUEUED AND hold = :hold AND hold <> 0 AND job IN (SELECT value FROM json_each(:set))
RETURNING id

-- ======== events ========

-- SQLite has one writer at a time, so numbers become visible in ascending order; the next eight are for servers.
-- query events_lock()
DELETE FROM meta WHERE key = ''

-- query events_number(since int, server text)
DELETE FROM meta WHERE key = '' AND value IN (:since, :server)

-- query events_numbered() -> n int
SELECT 0 AS n

-- query events_server() -> server text
SELECT '' AS server

-- query events_server_known() -> known int
SELECT 0 AS known

-- query events_raise(server text, now int)
DELETE FROM meta WHERE key = '' AND value IN (:server, :now)

-- query events_insert_numbered(set json, part int, writer text)
DELETE FROM meta WHERE key = '' AND value IN (:set, :part, :writer)

-- query events_held() -> at int
SELECT at FROM events WHERE id < 0

-- query events_holder() -> holder text
SELECT '' AS holder

-- query events_frontier() -> until int, newest int
SELECT 9223372036854775807 AS until, coalesce((SELECT max(id) FROM events), 0) AS newest

-- query events_insert(set json)
INSERT INTO events (at, uid, owner, who, origin, what, object, job, run, node, result, detail)
SELECT at, uid, owner, who, origin, what, object, job, run, node, result, detail
FROM given(:set) WHERE true

-- ======== changes ========

-- query job_change_lock(id int, uid int) -> uid int, owner text, name text, state int, queue text, revision int,
--	created_at int, updated_at int, spec text, asked int, reason text
SELECT uid, owner, name, state, queue, revision, created_at, updated_at, spec, coalesce(asked, 0) AS asked, reason FROM jobs
WHERE id = :id AND (:uid < 0 OR uid = :uid) AND state <> JOB_REMOVED

-- query due_lock(job int) -> slot int
SELECT slot FROM due WHERE job = :job

-- Planned slots that are not due yet and have no attempt.
-- query runs_unplan(job int, now int) -> slot int, queue text, uid int, size int
DELETE FROM runs INDEXED BY runs_open
WHERE job = :job AND ended_at = 0 AND +state = RUN_QUEUED AND kind = RUN_KIND_SCHEDULE AND attempt = 0
	AND slot > :now AND due_at > :now
RETURNING slot, queue, uid, {run_size}

-- query runs_rewrite(job int, queue text, priority int, overlap int, overlap_waiting int, places int, deadline int,
--	expires int, gated int, notifies int)
UPDATE runs INDEXED BY runs_open SET queue = :queue, priority = :priority, overlap = :overlap, overlap_waiting = :overlap_waiting,
	places = :places, deadline = :deadline, expires = :expires, gated = :gated, notifies = :notifies,
	hold = CASE WHEN hold = HOLD_PERMIT THEN HOLD_NONE ELSE hold END
WHERE job = :job AND ended_at = 0 AND +state = RUN_QUEUED

-- SQLite has no round trips to save, so these statements are not used.
-- query job_name_rival(job int, name text) -> id int
SELECT id FROM jobs WHERE id = 0 AND :job = 0 AND :name = ''

-- query counter_of_job(what int, job int) -> n int
SELECT n FROM counters WHERE what = 0 AND state = 0 AND queue = '' AND node = '' AND :what = 0 AND :job = 0

-- query job_revisions_known(job int, less int) -> current int, old int, size int
SELECT 0 AS current, 0 AS old, 0 AS size FROM jobs WHERE id = 0 AND :job = 0 AND :less = 0

-- query revisions_trim_all(job int, before int, n int)
DELETE FROM job_revisions WHERE job = :job AND revision < :before AND :n = 0

-- query pauses_of_job(job int) -> scope text, key text, uid int, by_uid int, by_name text, reason text, at int,
--	until int, spared text, later int
SELECT scope, key, uid, by_uid, by_name, reason, at, until, spared, later FROM pauses WHERE uid = 0 AND :job = 0

-- ======== notices ========

-- Creates the missing rows, one per job, and locks all of them until the commit.
-- query health_take(set json) -> job int, bad int, since int, slot int, last_success int, typical int
INSERT INTO job_health (job, bad, since, slot, last_success, typical)
SELECT value, HEALTH_GOOD, 0, 0, 0, 0 FROM json_each(:set) WHERE true
ON CONFLICT (job) DO UPDATE SET job = excluded.job
RETURNING job, bad, since, slot, last_success, typical

-- query health_put(set json)
UPDATE job_health SET bad = given.bad, since = given.since, slot = given.slot,
	last_success = given.last_success, typical = given.typical,
	success_at = max(job_health.success_at, given.success_at), failure_at = max(job_health.failure_at, given.failure_at),
	missed_at = max(job_health.missed_at, given.missed_at), took = CASE WHEN given.took > 0 THEN given.took ELSE job_health.took END
FROM given(:set) AS given
WHERE job_health.job = given.job

-- One notice for each channel of the current definition.
-- query notices_insert(set json) -> id int
INSERT INTO notices (job, run, uid, what, channel, state, tries, created_at, due_at, done_at, detail)
SELECT given.job, given.run, jobs.uid, given.what, channels.value, NOTICE_WAITING, 0, given.now, given.now, 0, given.detail
FROM given(:set) AS given CROSS JOIN jobs
	CROSS JOIN json_each(CASE WHEN json_valid(jobs.spec) THEN jobs.spec ELSE '{}' END, '$.notify') AS channels
WHERE jobs.id = given.job
	AND (given.what = 'test' OR (given.what = 'output') = (substr(channels.value, 1, 7) = 'output:'))
ON CONFLICT DO NOTHING
RETURNING id

-- The first due notices of each of these owners.
-- query notices_due(set json, now int, n int) -> uid int, id int
SELECT notices.uid, notices.id
FROM json_each(:set) AS given CROSS JOIN notices
WHERE notices.id IN (SELECT first.id FROM notices AS first
	WHERE first.state = NOTICE_WAITING AND first.uid = given.value AND first.due_at <= :now
	ORDER BY first.due_at, first.id LIMIT :n)
ORDER BY notices.due_at, notices.id

-- query notices_take(node text, now int, again_at int, set json) -> id int
UPDATE notices SET tries = tries + 1, due_at = :again_at, node = :node
WHERE id IN (SELECT value FROM json_each(:set)) AND +state = NOTICE_WAITING AND due_at <= :now
RETURNING id

-- Notices that earlier engines of this node were sending when they ended, except those in the set,
-- which are still being sent.
-- query notices_resume(name text, id text, now int, set json)
UPDATE notices SET due_at = :now
WHERE state = NOTICE_WAITING AND due_at > :now AND node <> :id
	AND node IN (SELECT nodes.id FROM nodes WHERE nodes.name = :name)
	AND notices.id NOT IN (SELECT value FROM json_each(:set))

-- query notice_done(id int, try int, untried int, state int, due_at int, now int, error text) -> uid int, job int, run int, channel text
UPDATE notices SET state = :state, due_at = :due_at, error = :error, node = NULL, tries = tries - :untried,
	done_at = CASE WHEN :state = NOTICE_WAITING THEN 0 ELSE :now END
WHERE id = :id AND tries = :try AND +state = NOTICE_WAITING
RETURNING uid, job, run, channel

-- query notices_get(set json) -> {notice_row}
SELECT {notice_columns}
FROM json_each(:set) AS wanted CROSS JOIN notices LEFT JOIN jobs ON jobs.id = notices.job
WHERE notices.id = wanted.value
ORDER BY notices.id

-- query notice_page_job(job int, before int, n int) -> {notice_row}
SELECT {notice_columns} FROM notices LEFT JOIN jobs ON jobs.id = notices.job
WHERE notices.job = :job AND notices.id < :before ORDER BY notices.id DESC LIMIT :n

-- ======== nodes ========

-- A node that is opened a second time keeps the longer lease, because its engine may rely on it.
-- query node_insert(id text, name text, spawner text, host text, now int, ttl int, run_ttl int, labels text, barred int, boot text, machine text)
INSERT INTO nodes (id, name, spawner, host, opened_at, alive_until, runs_until, renewed_at, labels, barred, boot, machine, protocol)
VALUES (:id, :name, :spawner, :host, :now, {clock} + :ttl, {clock} + :run_ttl, {clock}, :labels, :barred, :boot, :machine, 2)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, protocol = excluded.protocol, spawner = excluded.spawner,
	host = excluded.host, guarded = 0, closed_at = 0, lost = 0, left_runs = NULL, renewed_at = excluded.renewed_at,
	runs_until = CASE WHEN nodes.closed_at = 0 THEN max(nodes.runs_until, excluded.runs_until) ELSE excluded.runs_until END,
	alive_until = CASE WHEN nodes.closed_at = 0 THEN max(nodes.alive_until, excluded.alive_until) ELSE excluded.alive_until END

-- The open nodes of this name. The row locks wait for their transactions in progress.
-- query nodes_named(name text) -> id text
SELECT id FROM nodes WHERE name = :name AND closed_at = 0 ORDER BY id

-- query node_open(id text) -> spawner text, draining int
SELECT spawner, coalesce((SELECT draining FROM node_orders WHERE node_orders.name = nodes.name), 0) AS draining
FROM nodes WHERE id = :id AND closed_at = 0 AND alive_until > {clock}

-- query nodes_all() -> id text, name text, host text, opened_at int, lease_remains int, runs_remain int, guarded int, skew int,
--	draining int, leads int, segments int, active int, labels text, barred int
SELECT nodes.id, nodes.name, nodes.host, nodes.opened_at, nodes.alive_until - {clock} AS lease_remains,
	nodes.runs_until - {clock} AS runs_remain, nodes.guarded, nodes.skew,
	coalesce(node_orders.draining, 0) AS draining,
	(SELECT count(*) FROM leases WHERE leases.name = 'leader' AND holder = nodes.id AND until > {clock}) AS leads,
	(SELECT count(*) FROM segments WHERE segments.holder = nodes.id) AS segments,
	(SELECT coalesce(sum(n), 0) FROM counters WHERE what = 3 AND counters.node = nodes.name) AS active,
	nodes.labels, nodes.barred
FROM nodes LEFT JOIN node_orders ON node_orders.name = nodes.name
WHERE nodes.closed_at = 0 ORDER BY nodes.name, nodes.id

-- The last engine of each node name that has no open engine.
-- query nodes_gone(lost_since int, left_since int) -> id text, name text, host text, opened_at int, closed_at int, lost int,
--	active int, labels text, draining int
SELECT last.id, last.name, last.host, last.opened_at, last.closed_at, last.lost,
	(SELECT coalesce(sum(n), 0) FROM counters WHERE what = 3 AND counters.node = last.name) AS active, last.labels,
	coalesce(node_orders.draining, 0) AS draining
FROM nodes AS last LEFT JOIN node_orders ON node_orders.name = last.name
WHERE last.closed_at > CASE WHEN node_orders.draining = 1 THEN 0 WHEN last.lost = 1 THEN :lost_since ELSE :left_since END
	AND NOT EXISTS (SELECT 1 FROM nodes AS later WHERE later.name = last.name AND later.id <> last.id
		AND (later.closed_at = 0 OR later.closed_at > last.closed_at
			OR (later.closed_at = last.closed_at AND later.opened_at > last.opened_at)))
ORDER BY last.name, last.id

-- runs_until is the time since boot here and cannot be compared with the time of day.
-- query node_lost(id text, now int)
UPDATE nodes SET closed_at = :now, lost = 1 WHERE id = :id AND closed_at = 0

-- Dead nodes: the run lease is over, and the spawner has ended the runs that must not overlap. A
-- spawner without a deadline ends nothing, so such a node (guarded = 0) is given ':wait' more time.
-- query nodes_dead(id text, wait int) -> id text, name text
SELECT id, name FROM nodes
WHERE closed_at = 0 AND id <> :id
	AND max(runs_until, alive_until) + CASE WHEN guarded = 1 THEN 0 ELSE :wait END <= {clock}
ORDER BY id

-- SQLite has one writer, so the leader always searches for dead nodes.
-- query leader_look(id text, wait int, before int) -> found int
SELECT 1 AS found WHERE coalesce(:id, :wait, :before) IS NOT NULL

-- Runs of closed nodes that can be taken over: runs that the spawner did not hold at once, other
-- runs when the run lease is over. If the spawner has no deadline, the node must have been closed
-- before ':before'.
-- query runs_away(before int) -> id int, uid int, queue text, name text
SELECT runs.id, runs.uid, runs.queue, nodes.name FROM runs CROSS JOIN nodes ON nodes.id = runs.node
WHERE runs.state IN (RUN_CLAIMED, RUN_RUNNING) AND runs.state <> RUN_SUCCEEDED AND nodes.closed_at <> 0
	AND (nodes.closed_at < :before
		OR (nodes.left_runs IS NOT NULL AND nodes.guarded = 1 AND nodes.runs_until <= {clock})
		OR (nodes.left_runs IS NOT NULL AND runs.id NOT IN (SELECT value FROM json_each(nodes.left_runs))))
ORDER BY runs.id

-- query node_runs(id text) -> id int, uid int, queue text
SELECT id, uid, queue FROM runs
WHERE state IN (RUN_CLAIMED, RUN_RUNNING) AND state <> RUN_SUCCEEDED AND node = :id
ORDER BY id

-- ======== the leader ========

-- query leader_get() -> holder text, name text, term int, remains int, worked int
SELECT leases.holder, nodes.name, leases.term, leases.until - {clock} AS remains,
	(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'led_at') AS worked
FROM leases LEFT JOIN nodes ON nodes.id = leases.holder WHERE leases.name = 'leader'

-- The facts that a node reads with the renewal of its lease. 'slot' is the first slot of all segments,
-- 'planner' the node that plans it.
-- query lease_facts(id text, name text) -> draining int, leader text, term int, remains int, worked int, others int, segments int, slot int, planner text
SELECT coalesce(orders.draining, 0) AS draining, leader.name AS leader,
	leases.term, leases.until - {clock} AS remains, (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'led_at') AS worked,
	(SELECT count(*) FROM nodes WHERE closed_at = 0 AND alive_until > {clock} AND id <> :id) AS others,
	(SELECT coalesce(sum(1 << segment), 0) FROM segments WHERE holder = :id) AS segments,
	coalesce(first.slot, 0) AS slot, planner.name AS planner
FROM leases LEFT JOIN nodes AS leader ON leader.id = leases.holder LEFT JOIN node_orders AS orders ON orders.name = :name
LEFT JOIN (SELECT slot, segment FROM due ORDER BY slot LIMIT 1) AS first ON 1 = 1
LEFT JOIN segments ON segments.segment = first.segment LEFT JOIN nodes AS planner ON planner.id = segments.holder
WHERE leases.name = 'leader'

-- Takes the leader lease if it is free.
-- query leader_take(holder text, name text, ttl int) -> term int
UPDATE leases SET holder = :holder, term = term + 1, until = {clock} + :ttl
WHERE leases.name = 'leader' AND until <= {clock}
	AND EXISTS (SELECT 1 FROM nodes WHERE nodes.id = :holder AND nodes.closed_at = 0)
	AND NOT EXISTS (SELECT 1 FROM node_orders WHERE node_orders.name = :name AND draining = 1)
RETURNING term

-- query leader_hold(holder text, term int) -> term int
SELECT term FROM leases WHERE name = 'leader' AND holder = :holder AND term = :term AND until > {clock}

-- Locked until the commit: assigning a segment to another node waits.
-- query segments_hold(holder text) -> segment int
SELECT segment FROM segments WHERE holder = :holder ORDER BY segment

-- Assigns the segments of earlier engines of a node to its new engine.
-- query segments_inherit(name text, id text)
UPDATE segments SET holder = :id, term = term + 1
WHERE holder IN (SELECT nodes.id FROM nodes WHERE nodes.name = :name AND nodes.id <> :id)

-- Frees the leader lease of earlier engines of this node; any node may take it.
-- query leader_vacate(name text, id text)
UPDATE leases SET holder = '', until = 0
WHERE leases.name = 'leader' AND holder IN (SELECT nodes.id FROM nodes WHERE nodes.name = :name AND nodes.id <> :id)

-- query segments_put(set json)
INSERT INTO segments (segment, holder, term) SELECT segment, node, 1 FROM given(:set) WHERE true
ON CONFLICT (segment) DO UPDATE SET holder = excluded.holder, term = segments.term + 1

-- query node_held(name text, id text) -> id int, spawner text
SELECT id, spawner FROM runs
WHERE state IN (RUN_CLAIMED, RUN_RUNNING) AND state <> RUN_SUCCEEDED AND node <> :id
	AND node IN (SELECT nodes.id FROM nodes WHERE nodes.name = :name)
ORDER BY id

-- query runs_take_over(node text, set json)
UPDATE runs SET node = :node WHERE id IN (SELECT value FROM json_each(:set))

-- ======== output relays between nodes ========

-- Notifies a single node.
-- query relay_tell(node text) -> told int
SELECT 1 AS told WHERE :node <> ''

-- ======== retention ========

-- query runs_prune(set json) -> id int, state int, queue text, uid int, size int, dead_at int
DELETE FROM runs WHERE id IN (SELECT value FROM json_each(:set)) AND ended_at <> 0
RETURNING id, state, queue, uid, {run_size}, dead_at

-- query attempts_prune(set json) -> run int, number int, kept int, uid int
DELETE FROM attempts WHERE run IN (SELECT value FROM json_each(:set))
RETURNING run, number, output_bytes - output_dropped AS kept,
	coalesce((SELECT runs.uid FROM runs WHERE runs.id = attempts.run), -1) AS uid

-- query outputs_prune(set json) -> uid int, size int
DELETE FROM outputs WHERE run IN (SELECT value FROM json_each(:set))
RETURNING coalesce((SELECT runs.uid FROM runs WHERE runs.id = outputs.run), -1) AS uid, {tail_size}

-- query jobs_prune(set json) -> id int, state int, queue text, uid int, size int, dead_at int
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(:set)) AND +state >= JOB_FINISHED
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.job = jobs.id)
RETURNING id, state, queue, uid, {job_size}, 0 AS dead_at

-- query tags_prune(set json)
DELETE FROM job_tags WHERE job IN (SELECT value FROM json_each(:set))

-- query revisions_prune(set json) -> uid int, size int
DELETE FROM job_revisions WHERE job IN (SELECT value FROM json_each(:set))
RETURNING coalesce((SELECT jobs.uid FROM jobs WHERE jobs.id = job_revisions.job), -1) AS uid, {revision_size}

-- query job_pauses_prune(set json)
DELETE FROM job_pauses WHERE job IN (SELECT value FROM json_each(:set))

-- query health_prune(set json)
DELETE FROM job_health WHERE job IN (SELECT value FROM json_each(:set))

-- query buckets_prune(set json)
DELETE FROM buckets WHERE scope = 'job' AND key IN (SELECT CAST(value AS TEXT) FROM json_each(:set))

-- query notices_prune(set json) -> state int
DELETE FROM notices WHERE job IN (SELECT value FROM json_each(:set))
RETURNING state

-- query kept_outputs(uid int, n int) -> run int, fence int, number int, kept int
SELECT attempts.run, attempts.fence, attempts.number, attempts.output_bytes - attempts.output_dropped AS kept
FROM attempts CROSS JOIN runs
WHERE runs.id = attempts.run AND attempts.output_bytes > attempts.output_dropped AND runs.uid = :uid ORDER BY attempts.run, attempts.fence LIMIT :n

-- query outputs_forget(set json)
UPDATE attempts SET output_dropped = attempts.output_bytes
FROM given(:set) AS given
WHERE attempts.run = given.run AND attempts.fence = given.fence

-- query store_bytes() -> bytes int
SELECT (pages.page_count - free.freelist_count) * size.page_size AS bytes
FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size

-- ======== queues and limits ========

-- query limit_lock(scope text, key text) -> key text, running int, weight int, rate_n int, rate_per int, rate_burst int
SELECT key, running, weight, rate_n, rate_per, rate_burst FROM limits WHERE scope = :scope AND key = :key

-- query queue_use(key text) -> key text
SELECT key FROM limits WHERE scope = 'queue' AND key = :key

-- query limits_hold(set json) -> scope text, key text
SELECT scope, key FROM limits WHERE scope = '' AND key = :set

-- query counters_in(what int) -> state int, queue text, n int
SELECT state, queue, sum(n) AS n FROM counters WHERE what = :what GROUP BY state, queue

-- query counter_in(what int, state int, queue text) -> n int
SELECT coalesce(sum(n), 0) AS n FROM counters WHERE what = :what AND state = :state AND queue = :queue

-- ======== check and restore ========

-- query check_outputs() -> state int, queue text, n int
SELECT runs.uid AS state, '' AS queue, sum(attempts.output_bytes - attempts.output_dropped) AS n
FROM attempts JOIN runs ON runs.id = attempts.run WHERE attempts.output_bytes > attempts.output_dropped GROUP BY runs.uid

-- query check_store() -> state int, queue text, n int
SELECT sized.uid AS state, '' AS queue, sum(sized.size) AS n FROM (
	SELECT uid, {job_size} FROM jobs
	UNION ALL SELECT (SELECT jobs.uid FROM jobs WHERE jobs.id = job_revisions.job) AS uid, {revision_size} FROM job_revisions
	UNION ALL SELECT uid, {template_size} FROM templates
	UNION ALL SELECT uid, {run_size} FROM runs
	UNION ALL SELECT (SELECT runs.uid FROM runs WHERE runs.id = outputs.run) AS uid, {tail_size} FROM outputs
	UNION ALL SELECT uid, {result_size} FROM results
	UNION ALL SELECT uid, {state_size} FROM run_states) AS sized
WHERE sized.uid IS NOT NULL GROUP BY sized.uid

-- ======== reading ========

-- query runs_get(set json) -> {run_row}, node_name text
SELECT {run_columns}, {node_named}
FROM json_each(:set) AS wanted CROSS JOIN runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.id = wanted.value
ORDER BY wanted.key

-- query runs_get_claimed(set json) -> {run_row}, spec text, digest int, typical int
SELECT {run_columns}, jobs.spec, jobs.digest,
	CASE WHEN runs.notifies = 1 THEN (SELECT typical FROM job_health WHERE job_health.job = runs.job) END AS typical
FROM json_each(:set) AS wanted CROSS JOIN runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.id = wanted.value
ORDER BY wanted.key

-- query jobs_get(set json, uid int) -> id int, uid int, owner text, name text, state int, reason text,
--	revision int, segment int, queue text, priority int, spec text, digest int, created_at int, updated_at int,
--	queued_slot int, due_slot int, last_id int, last_state int, last_slot int, last_ended_at int,
--	last_exit_code int, last_term_signal int, pause_by int, pause_name text, pause_at int, pause_until int,
--	pause_reason text, pause_later int
SELECT jobs.id, jobs.uid, jobs.owner, jobs.name, jobs.state, jobs.reason, jobs.revision, jobs.segment,
	jobs.queue, jobs.priority, jobs.spec, jobs.digest, jobs.created_at, jobs.updated_at,
	(SELECT min(CASE WHEN queued.attempt > 0 THEN queued.due_at ELSE queued.slot END) FROM runs AS queued INDEXED BY runs_open
		WHERE queued.job = jobs.id AND queued.ended_at = 0 AND queued.state = RUN_QUEUED) AS queued_slot,
	due.slot AS due_slot,
	last.id AS last_id, last.state AS last_state, last.slot AS last_slot,
	last.ended_at AS last_ended_at, last.exit_code AS last_exit_code,
	last.term_signal AS last_term_signal,
	job_pauses.by_uid AS pause_by, job_pauses.by_name AS pause_name, job_pauses.at AS pause_at,
	job_pauses.until AS pause_until, job_pauses.reason AS pause_reason, job_pauses.later AS pause_later
FROM json_each(:set) AS wanted CROSS JOIN jobs
	LEFT JOIN due ON due.job = jobs.id
	LEFT JOIN job_pauses ON job_pauses.job = jobs.id
	LEFT JOIN runs AS last ON last.id =
		(SELECT newest.id FROM runs AS newest WHERE newest.job = jobs.id AND +newest.state <> RUN_QUEUED
		ORDER BY newest.slot DESC, newest.kind DESC LIMIT 1)
WHERE jobs.id = wanted.value AND (:uid < 0 OR jobs.uid = :uid)
ORDER BY wanted.key

-- query jobs_waiting(set json) -> job int, id int, slot int, due_at int, hold int, attempt int, reason text
SELECT open.job, open.id, open.slot, open.due_at, open.hold, open.attempt, open.reason
FROM json_each(:set) AS wanted CROSS JOIN runs AS open
WHERE open.id = (SELECT mine.id FROM runs AS mine INDEXED BY runs_open
	WHERE mine.job = wanted.value AND mine.ended_at = 0 AND mine.state = RUN_QUEUED ORDER BY mine.slot, mine.id LIMIT 1)

-- query job_find(name text, uid_low int, uid_high int) -> id int, uid int
SELECT id, uid FROM jobs
WHERE name = :name AND uid BETWEEN :uid_low AND :uid_high AND +state <> JOB_REMOVED
ORDER BY uid, id DESC LIMIT 1

-- The jobs of a set, in its order.
-- query job_lines(set json) -> {job_line}
SELECT {job_line_columns} FROM json_each(:set) AS wanted CROSS JOIN jobs WHERE jobs.id = wanted.value ORDER BY wanted.key

-- The sort keys of the jobs of a set.
-- query jobs_sort_keys(set json) -> {job_keys}
SELECT {job_key_columns}
FROM json_each(:set) AS wanted CROSS JOIN jobs
	LEFT JOIN due ON due.job = jobs.id
	LEFT JOIN runs AS queued ON queued.id = (SELECT mine.id FROM runs AS mine INDEXED BY runs_open
		WHERE mine.job = jobs.id AND mine.ended_at = 0 AND mine.state = RUN_QUEUED ORDER BY mine.slot, mine.id LIMIT 1)
	LEFT JOIN runs AS last ON last.id = (SELECT newest.id FROM runs AS newest
		WHERE newest.job = jobs.id AND +newest.state <> RUN_QUEUED ORDER BY newest.slot DESC, newest.kind DESC LIMIT 1)
WHERE jobs.id = wanted.value

-- The jobs of a set that have a tag.
-- query tag_jobs_of(key text, value text, set json) -> job int
SELECT job_tags.job FROM json_each(:set) AS wanted CROSS JOIN job_tags
WHERE job_tags.key = :key AND job_tags.value = :value AND job_tags.job = wanted.value

-- query tag_key_jobs_of(key text, set json) -> job int
SELECT job_tags.job FROM json_each(:set) AS wanted CROSS JOIN job_tags
WHERE job_tags.key = :key AND job_tags.job = wanted.value

-- The names of a range that match a pattern with '*' and '?'. Only the index is read.
-- query job_names_like(name text, id int, high text, high_id int, glob text, n int) -> id int, name text
SELECT id, name FROM jobs
WHERE (name, id) > (:name, :id) AND (name, id) <= (:high, :high_id) AND name GLOB :glob
ORDER BY name, id LIMIT :n

-- ======== lists of a state, owner, queue, tag or kind ========

-- Names of the newest jobs of a user, for suggestions: up to 2000 of each state.
-- query job_names(uid int, n int) -> name text
SELECT name FROM (
	SELECT * FROM (SELECT id, name FROM jobs WHERE uid = :uid AND state = JOB_ACTIVE ORDER BY id DESC LIMIT 2000) AS j0 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE uid = :uid AND state = JOB_PAUSED ORDER BY id DESC LIMIT 2000) AS j1 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE uid = :uid AND state = JOB_SUSPENDED ORDER BY id DESC LIMIT 2000) AS j2 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE uid = :uid AND state = JOB_FINISHED ORDER BY id DESC LIMIT 2000) AS j3 UNION ALL
	SELECT * FROM (SELECT id, name FROM jobs WHERE uid = :uid AND state = JOB_CANCELLED ORDER BY id DESC LIMIT 2000) AS j4) AS newest
WHERE name IS NOT NULL ORDER BY id DESC LIMIT :n

-- query job_page_uid(uid int, state int, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE uid = :uid AND state = :state AND id > :after ORDER BY id LIMIT :n

-- query job_page_uid_down(uid int, state int, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE uid = :uid AND state = :state AND id < :before ORDER BY id DESC LIMIT :n

-- query job_page_owner(owner text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE owner = :owner AND id > :after ORDER BY id LIMIT :n

-- query job_page_owner_down(owner text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE owner = :owner AND id < :before ORDER BY id DESC LIMIT :n

-- query job_page_state(state int, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE state = :state AND id > :after ORDER BY id LIMIT :n

-- query job_page_state_down(state int, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE state = :state AND id < :before ORDER BY id DESC LIMIT :n

-- query job_page_queue(queue text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE queue = :queue AND queue <> 'default' AND id > :after ORDER BY id LIMIT :n

-- query job_page_queue_down(queue text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE queue = :queue AND queue <> 'default' AND id < :before ORDER BY id DESC LIMIT :n

-- query job_page_tag(tag_key text, value text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags CROSS JOIN jobs
WHERE job_tags.key = :tag_key AND job_tags.value = :value AND job_tags.job > :after AND jobs.id = job_tags.job
ORDER BY job_tags.job LIMIT :n

-- query job_page_tag_down(tag_key text, value text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags CROSS JOIN jobs
WHERE job_tags.key = :tag_key AND job_tags.value = :value AND job_tags.job < :before AND jobs.id = job_tags.job
ORDER BY job_tags.job DESC LIMIT :n

-- query job_page_tag_key(tag_key text, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags CROSS JOIN jobs
WHERE job_tags.key = :tag_key AND job_tags.job > :after AND jobs.id = job_tags.job
ORDER BY job_tags.job LIMIT :n

-- query job_page_tag_key_down(tag_key text, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM job_tags CROSS JOIN jobs
WHERE job_tags.key = :tag_key AND job_tags.job < :before AND jobs.id = job_tags.job
ORDER BY job_tags.job DESC LIMIT :n

-- query run_page_uid(uid int, since int, slot int, id int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE uid = :uid AND slot >= :since AND (slot, id) < (:slot, :id)
ORDER BY slot DESC, id DESC LIMIT :n

-- query run_page_state(state int, since int, slot int, id int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE state = :state AND state <> RUN_SUCCEEDED AND slot >= :since AND (slot, id) < (:slot, :id)
ORDER BY slot DESC, id DESC LIMIT :n

-- query run_page_queue(queue text, since int, slot int, id int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE queue = :queue AND queue <> 'default' AND slot >= :since AND (slot, id) < (:slot, :id)
ORDER BY slot DESC, id DESC LIMIT :n

-- query events_after_owner(owner int, after int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE owner = :owner AND id > :after ORDER BY id LIMIT :n

-- query events_before_owner(owner int, before int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE owner = :owner AND id < :before ORDER BY id DESC LIMIT :n

-- query events_after_what(what text, after int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE what = :what AND what <> 'job.add' AND id > :after ORDER BY id LIMIT :n

-- query events_before_what(what text, before int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE what = :what AND what <> 'job.add' AND id < :before ORDER BY id DESC LIMIT :n

-- query events_after_owner_what(owner int, what text, after int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE owner = :owner AND what = :what AND what <> 'job.add' AND id > :after ORDER BY id LIMIT :n

-- query events_before_owner_what(owner int, what text, before int, n int) -> {event_row}
SELECT {event_columns} FROM events
WHERE owner = :owner AND what = :what AND what <> 'job.add' AND id < :before ORDER BY id DESC LIMIT :n

-- ======== metrics ========

-- query metric_jobs_tagged(key text, n int) -> id int, uid int, owner text, name text, queued_slot int,
--	due_slot int, success_at int, failure_at int, missed_at int, took int
SELECT jobs.id, jobs.uid, jobs.owner, jobs.name,
	(SELECT min(CASE WHEN queued.attempt > 0 THEN queued.due_at ELSE queued.slot END) FROM runs AS queued INDEXED BY runs_open
		WHERE queued.job = jobs.id AND queued.ended_at = 0 AND queued.state = RUN_QUEUED) AS queued_slot,
	due.slot AS due_slot, coalesce(job_health.success_at, 0) AS success_at, coalesce(job_health.failure_at, 0) AS failure_at,
	coalesce(job_health.missed_at, 0) AS missed_at, coalesce(job_health.took, 0) AS took
FROM (SELECT job FROM job_tags WHERE key = :key ORDER BY job LIMIT :n) AS tagged CROSS JOIN jobs
	LEFT JOIN due ON due.job = jobs.id LEFT JOIN job_health ON job_health.job = jobs.id
WHERE jobs.id = tagged.job AND jobs.state < JOB_FINISHED
ORDER BY jobs.id

-- query metric_jobs_all(n int) -> id int, uid int, owner text, name text, queued_slot int,
--	due_slot int, success_at int, failure_at int, missed_at int, took int
SELECT listed.id, listed.uid, listed.owner, listed.name,
	(SELECT min(CASE WHEN queued.attempt > 0 THEN queued.due_at ELSE queued.slot END) FROM runs AS queued INDEXED BY runs_open
		WHERE queued.job = listed.id AND queued.ended_at = 0 AND queued.state = RUN_QUEUED) AS queued_slot,
	due.slot AS due_slot, coalesce(job_health.success_at, 0) AS success_at, coalesce(job_health.failure_at, 0) AS failure_at,
	coalesce(job_health.missed_at, 0) AS missed_at, coalesce(job_health.took, 0) AS took
FROM (SELECT id, uid, owner, name FROM jobs WHERE state < JOB_FINISHED ORDER BY state, id LIMIT :n) AS listed
	LEFT JOIN due ON due.job = listed.id LEFT JOIN job_health ON job_health.job = listed.id
ORDER BY listed.id

-- ======== dead letters ========

-- query dead_lock(set json) -> id int, uid int, job int, state int, queue text, job_state int, job_name text
SELECT runs.id, runs.uid, runs.job, runs.state, runs.queue, coalesce(jobs.state, JOB_REMOVED) AS job_state, jobs.name AS job_name
FROM json_each(:set) AS wanted CROSS JOIN runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.id = wanted.value AND +runs.dead_at <> 0
ORDER BY runs.id

-- query job_reopen(id int, now int) -> uid int, queue text
UPDATE jobs SET state = JOB_ACTIVE, reason = NULL, updated_at = :now
WHERE id = :id AND +state = JOB_FINISHED
	AND NOT EXISTS (SELECT 1 FROM jobs AS other
		WHERE other.uid = jobs.uid AND other.name = jobs.name AND other.state < JOB_FINISHED)
RETURNING uid, queue

-- query dead_retry(set json, reason text, now int)
UPDATE runs SET state = RUN_QUEUED, reason = :reason, due_at = :now, failures = 0, lost = 0, dead_at = 0, first_start = 0,
	claimed_at = 0, started_at = 0, ended_at = 0, exit_code = -1, term_signal = 0, node = NULL, cancel_asked = 0,
	hold = 0, deadline = 0, expires = 0
WHERE id IN (SELECT value FROM json_each(:set)) AND +dead_at <> 0

-- query dead_purge(set json)
UPDATE runs SET dead_at = 0 WHERE id IN (SELECT value FROM json_each(:set)) AND +dead_at <> 0
