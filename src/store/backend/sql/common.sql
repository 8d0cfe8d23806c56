-- SPDX-License-Identifier: Apache-2.0
-- The statements that are the same for SQLite and PostgreSQL; see generate.awk.

-- ======== the store itself ========

-- query meta_get(key text) -> value text
SELECT value FROM meta WHERE key = :key

-- query writer_open(id text, at int)
INSERT INTO writers (id, batch, at) VALUES (:id, 0, :at)

-- query writer_put(id text, batch int, at int)
UPDATE writers SET batch = :batch, at = :at WHERE id = :id

-- ======== owners ========

-- query owner_find(uid int, name text) -> number int
SELECT number FROM owners WHERE uid = :uid AND name = :name

-- query owner_named(name text) -> number int
SELECT number FROM owners WHERE name = :name ORDER BY since DESC LIMIT 1

-- ======== jobs ========

-- query job_by_key(uid int, key text) -> id int, state int, removed_at int, content int
SELECT id, state, removed_at, content FROM jobs WHERE uid = :uid AND key = :key

-- query job_key_drop(id int)
UPDATE jobs SET key = NULL WHERE id = :id

-- query job_by_live_name(uid int, name text) -> id int, asked int
SELECT id, coalesce(asked, 0) AS asked FROM jobs WHERE uid = :uid AND name = :name AND state < JOB_FINISHED

-- query job_first_run(job int) -> id int
SELECT id FROM runs WHERE job = :job ORDER BY slot, kind LIMIT 1

-- query job_state_set(id int, state int, reason text, now int)
UPDATE jobs SET state = :state, reason = :reason, updated_at = :now,
	removed_at = CASE WHEN :state = JOB_REMOVED THEN :now ELSE 0 END
WHERE id = :id

-- The newest runs of a job are examined through the index (job, slot, kind). A run that did not start has no duration.
-- query run_durations(job int, n int) -> took int, state int
SELECT ended_at - started_at AS took, state FROM (
	SELECT started_at, ended_at, state, slot FROM runs WHERE job = :job ORDER BY slot DESC LIMIT :n) AS newest
WHERE started_at <> 0 AND ended_at <> 0 ORDER BY slot DESC

-- query applied_members(uid int, applied_set text) -> id int, name text
SELECT id, name FROM {applied_rows}
WHERE uid = :uid AND applied_set = :applied_set AND applied_set IS NOT NULL AND state < JOB_CANCELLED ORDER BY id

-- ======== the schedule ========

-- query due_crowd(slot int, n int) -> jobs int
SELECT count(*) AS jobs FROM (SELECT 1 FROM due WHERE slot = :slot LIMIT :n) AS same

-- ======== permits, limits, pauses ========

-- query counters_tidy(what int)
DELETE FROM counters WHERE what = :what AND n = 0

-- query limits_now() -> scope text, key text, running int, weight int, rate_n int, rate_per int, rate_burst int,
--	full_at int
SELECT limits.scope, limits.key, running, weight, rate_n, rate_per, rate_burst, full_at
FROM limits LEFT JOIN buckets ON buckets.scope = limits.scope AND buckets.key = limits.key

-- Whether pauses_past_drop deletes any.
-- query pauses_past_ready() -> at int
SELECT at FROM pauses_past WHERE until <= coalesce((SELECT slot FROM due ORDER BY slot LIMIT 1), 9223372036854775807) LIMIT 1

-- Deletes past pauses up to whose end every slot is planned. The caller decides about the runs of
-- these slots.
-- query pauses_past_drop() -> job int, scope text, key text, uid int, spared text, at int, until int
DELETE FROM pauses_past WHERE until <= coalesce((SELECT slot FROM due ORDER BY slot LIMIT 1), 9223372036854775807)
RETURNING job, scope, key, uid, spared, at, until

-- query pause_keep(scope text, key text, uid int, now int)
INSERT INTO pauses_past (job, scope, key, uid, at, until, spared)
SELECT 0, scope, key, uid, at, CASE WHEN until = 0 OR until > :now THEN :now ELSE until END, spared FROM pauses
WHERE scope = :scope AND key = :key AND uid = :uid AND (later = 0 OR at < :now)
ON CONFLICT DO NOTHING

-- query pauses_keep_over(now int)
INSERT INTO pauses_past (job, scope, key, uid, at, until, spared)
SELECT 0, scope, key, uid, at, until, spared FROM pauses WHERE until <> 0 AND until <= :now
ON CONFLICT DO NOTHING

-- ======== attempts ========

-- query attempt_outcome(run int, fence int) -> outcome int, kept int
SELECT outcome, output_bytes - output_dropped AS kept FROM attempts WHERE run = :run AND fence = :fence

-- query attempts_of(run int) -> run int, number int, fence int, node text, spawner text, pid int,
--	started_at int, ended_at int, outcome int, exit_code int, term_signal int, cpu_user int,
--	cpu_system int, max_rss int, io_read int, io_written int, output_bytes int, output_dropped int, error text, node_name text
SELECT run, number, fence, node, spawner, pid, started_at, ended_at, outcome, exit_code, term_signal,
	cpu_user, cpu_system, max_rss, io_read, io_written, output_bytes, output_dropped, error,
	(SELECT nodes.name FROM nodes WHERE nodes.id = attempts.node) AS node_name
FROM attempts WHERE run = :run ORDER BY fence

-- ======== after downtime or a clock change ========

-- After the clock was set back: deletes runs that were planned beyond the look-ahead; their jobs
-- are planned again.
-- query runs_undo(after int) -> job int, queue text, uid int, size int
DELETE FROM runs
WHERE state = RUN_QUEUED AND state <> RUN_SUCCEEDED AND slot > :after AND kind = RUN_KIND_SCHEDULE AND attempt = 0
	AND EXISTS (SELECT 1 FROM due WHERE due.job = runs.job)
RETURNING job, queue, uid, {run_size}

-- After the clock was set back: a run that was due at its submission does not wait for that time to
-- come again.
-- query runs_at_once(after int, now int)
UPDATE runs SET due_at = :now
WHERE state = RUN_QUEUED AND state <> RUN_SUCCEEDED AND slot > :after AND created_at >= slot AND due_at > :now

-- ======== pauses ========

-- query job_pause_get(job int) -> by_uid int, by_name text, at int, until int, reason text, later int
SELECT by_uid, by_name, at, until, reason, later FROM job_pauses WHERE job = :job

-- query job_pause_later(job int, by_uid int, by_name text, at int, reason text)
INSERT INTO job_pauses (job, by_uid, by_name, at, until, reason, later)
VALUES (:job, :by_uid, :by_name, :at, 0, :reason, 1)
ON CONFLICT (job) DO UPDATE SET by_uid = excluded.by_uid, by_name = excluded.by_name, at = excluded.at,
	until = 0, reason = excluded.reason, later = 1

-- query job_pauses_due(now int, n int) -> job int
SELECT job FROM job_pauses WHERE later = 1 AND at <= :now ORDER BY at LIMIT :n

-- query job_pauses_over(now int, n int) -> job int
SELECT job FROM job_pauses WHERE until <> 0 AND until <= :now ORDER BY until LIMIT :n

-- query pause_put(scope text, key text, uid int, by_uid int, by_name text, reason text, at int, until int, spared text,
--	later int)
INSERT INTO pauses (scope, key, uid, by_uid, by_name, reason, at, until, spared, later)
VALUES (:scope, :key, :uid, :by_uid, :by_name, :reason, :at, :until, :spared, :later)
ON CONFLICT (scope, key, uid) DO UPDATE SET by_uid = excluded.by_uid, by_name = excluded.by_name,
	reason = excluded.reason, at = excluded.at, until = excluded.until, spared = excluded.spared,
	later = excluded.later

-- query pause_drop(scope text, key text, uid int) -> at int
DELETE FROM pauses WHERE scope = :scope AND key = :key AND uid = :uid
RETURNING at

-- query pauses_over(now int) -> scope text, key text, uid int, by_name text
DELETE FROM pauses WHERE until <> 0 AND until <= :now
RETURNING scope, key, uid, by_name

-- query pauses_count(uid int) -> n int
SELECT count(*) AS n FROM pauses WHERE uid = :uid

-- query pauses_get(uid int) -> scope text, key text, uid int, by_uid int, by_name text, reason text, at int,
--	until int, spared text, later int
SELECT scope, key, uid, by_uid, by_name, reason, at, until, spared, later FROM pauses
WHERE :uid < 0 OR uid < 0 OR uid = :uid ORDER BY at, scope, key, uid

-- query runs_unhold(hold int, uid int, queue text) -> id int
UPDATE runs SET hold = HOLD_NONE, reason = NULL
WHERE state = RUN_QUEUED AND hold = :hold AND hold <> 0 AND (:uid < 0 OR uid = :uid) AND (:queue = '' OR queue = :queue)
RETURNING id

-- query due_put(job int, segment int, slot int)
INSERT INTO due (job, segment, slot) VALUES (:job, :segment, :slot)
ON CONFLICT (job) DO UPDATE SET slot = excluded.slot

-- query run_manual_last(job int, slot int) -> slot int
SELECT slot FROM runs WHERE job = :job AND slot >= :slot AND kind = RUN_KIND_MANUAL ORDER BY slot DESC LIMIT 1

-- query run_last_slot(job int) -> slot_last int
SELECT slot_last FROM runs WHERE job = :job AND kind = RUN_KIND_SCHEDULE ORDER BY slot DESC LIMIT 1

-- ======== boots ========

-- query boot_insert(node text, boot text, at int) -> at int
INSERT INTO boots (node, boot, at) VALUES (:node, :boot, :at)
ON CONFLICT DO NOTHING
RETURNING at

-- query boot_jobs() -> id int, uid int, revision int, priority int, queue text, spec text
SELECT id, uid, revision, priority, queue, spec FROM {boot_rows}
WHERE boots = 1 AND state IN (JOB_ACTIVE, JOB_PAUSED) ORDER BY id

-- ======== changes ========

-- query job_change_read(id int, uid int) -> uid int, owner text, name text, state int, queue text, revision int,
--	created_at int, updated_at int, spec text, asked int, reason text
SELECT uid, owner, name, state, queue, revision, created_at, updated_at, spec, coalesce(asked, 0) AS asked, reason FROM jobs
WHERE id = :id AND (:uid < 0 OR uid = :uid) AND state <> JOB_REMOVED

-- query job_rewrite(id int, name text, key text, content int, asked int, state int, revision int, queue text,
--	priority int, boots int, now int, digest int, spec text)
UPDATE jobs SET name = :name, key = coalesce(:key, key), content = CASE WHEN :key IS NULL THEN content ELSE :content END,
	asked = :asked, state = :state, reason = CASE WHEN state = :state THEN reason END, revision = :revision, queue = :queue, priority = :priority,
	boots = :boots, updated_at = :now, digest = :digest, spec = :spec
WHERE id = :id

-- query chains_drop(job int)
DELETE FROM chains WHERE child = :job

-- query tags_drop(job int)
DELETE FROM job_tags WHERE job = :job

-- query revision_put(job int, revision int, uid int, who text, at int, what text, origin int, spec text) -> size int
INSERT INTO job_revisions (job, revision, uid, who, at, what, origin, spec)
VALUES (:job, :revision, :uid, :who, :at, :what, :origin, :spec)
ON CONFLICT DO NOTHING
RETURNING {revision_size}

-- Fails if there is such a row.
-- query revision_put_new(job int, revision int, uid int, who text, at int, what text, origin int, spec text)
INSERT INTO job_revisions (job, revision, uid, who, at, what, origin, spec)
VALUES (:job, :revision, :uid, :who, :at, :what, :origin, :spec)

-- query revisions_trim(job int, before int) -> size int
DELETE FROM job_revisions WHERE job = :job AND revision < :before
RETURNING {revision_size}

-- query revisions_of(job int, before int, n int) -> revision int, uid int, who text, at int, what text, origin int, spec text
SELECT revision, uid, who, at, what, origin, spec FROM job_revisions
WHERE job = :job AND revision < :before
ORDER BY revision DESC LIMIT :n

-- query template_put(uid int, name text, owner text, params text, spec text, now int) -> revision int
INSERT INTO templates (uid, name, owner, revision, params, spec, created_at, updated_at)
VALUES (:uid, :name, :owner, 1, :params, :spec, :now, :now)
ON CONFLICT (uid, name) DO UPDATE SET owner = excluded.owner, revision = templates.revision + 1,
	params = excluded.params, spec = excluded.spec, updated_at = excluded.updated_at
RETURNING revision

-- query template_drop(uid int, name text) -> revision int, size int
DELETE FROM templates WHERE uid = :uid AND name = :name
RETURNING revision, {template_size}

-- query template_get(uid int, name text) -> uid int, name text, owner text, revision int, params text, spec text,
--	created_at int, updated_at int
SELECT uid, name, owner, revision, params, spec, created_at, updated_at FROM templates
WHERE uid = :uid AND name = :name

-- query templates_of(uid int, after text, n int) -> uid int, name text, owner text, revision int, params text, spec text,
--	created_at int, updated_at int
SELECT uid, name, owner, revision, params, spec, created_at, updated_at FROM templates
WHERE uid = :uid AND name > :after
ORDER BY name LIMIT :n

-- query templates_count(uid int, n int) -> n int
SELECT count(*) AS n FROM (SELECT 1 FROM templates WHERE uid = :uid LIMIT :n) AS own

-- query tokens_changed()
INSERT INTO meta (key, value) VALUES ('tokens', '1')
ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)

-- query tokens_expire(now int, n int)
DELETE FROM tokens WHERE id IN (SELECT id FROM tokens
	WHERE expires_at > 0 AND expires_at <= :now AND kind <> TOKEN_API ORDER BY expires_at LIMIT :n)

-- query tokens_count(owner int, kind int) -> n int
SELECT count(*) AS n FROM tokens WHERE owner = :owner AND kind = :kind

-- query tokens_trim(owner int, kind int, n int)
DELETE FROM tokens WHERE owner = :owner AND kind = :kind AND id NOT IN (SELECT id FROM tokens
	WHERE owner = :owner AND kind = :kind ORDER BY created_at DESC, id LIMIT :n)

-- query token_spend(id text, now int) -> id text
DELETE FROM tokens WHERE id = :id AND kind = TOKEN_ONCE AND expires_at > :now
RETURNING id

-- query token_add(id text, kind int, name text, owner int, owner_name text, role int, everyone int, scope text,
--	hash text, parent text, created_by text, created_at int, expires_at int) -> id text
INSERT INTO tokens (id, kind, name, owner, owner_name, role, everyone, scope, hash, parent, created_by, created_at, expires_at)
VALUES (:id, :kind, :name, :owner, :owner_name, :role, :everyone, :scope, :hash, :parent, :created_by, :created_at, :expires_at)
ON CONFLICT DO NOTHING
RETURNING id

-- query token_drop(ref text, owner int) -> id text, name text
WITH named(id) AS (SELECT id FROM tokens
	WHERE (id = :ref OR (name = :ref AND kind = TOKEN_API)) AND (:owner = -1 OR (:owner = -2 AND owner <> 0) OR owner = :owner)
	ORDER BY created_at LIMIT 1)
DELETE FROM tokens WHERE id IN (SELECT id FROM named)
RETURNING id, name

-- query token_sessions_drop()
DELETE FROM tokens WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM tokens)

-- query tokens_of(owner int) -> id text, kind int, name text, owner int, owner_name text, role int, everyone int, scope text,
--	hash text, parent text, created_by text, created_at int, expires_at int
SELECT id, kind, name, owner, owner_name, role, everyone, scope, hash, parent, created_by, created_at, expires_at FROM tokens
WHERE :owner = -1 OR (:owner = -2 AND owner <> 0) OR owner = :owner
ORDER BY created_at, id

-- define event_row = id int, at int, uid int, owner int, who text, origin text, what text, object text, job int, run int,
--	node text, result text, detail text

-- define event_columns = id, at, uid, owner, who, origin, what, object, job, run, node, result, detail

-- query events_after(after int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE id > :after ORDER BY id LIMIT :n

-- query events_after_job(job int, after int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE job = :job AND id > :after ORDER BY id LIMIT :n

-- query events_before(before int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE id < :before ORDER BY id DESC LIMIT :n

-- query events_before_job(job int, before int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE job = :job AND id < :before ORDER BY id DESC LIMIT :n

-- query events_after_run(run int, after int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE run = :run AND run <> 0 AND id > :after ORDER BY id LIMIT :n

-- query events_before_run(run int, before int, n int) -> {event_row}
SELECT {event_columns} FROM events WHERE run = :run AND run <> 0 AND id < :before ORDER BY id DESC LIMIT :n

-- query event_at_most(id int) -> id int, at int
SELECT id, at FROM events WHERE id <= :id ORDER BY id DESC LIMIT 1

-- ======== moves of runs ========

-- query moves_add(node text, runs text)
INSERT INTO run_moves (node, runs) VALUES (:node, :runs)

-- query moves_after(after int, n int) -> id int, node text, runs text
SELECT id, node, runs FROM run_moves WHERE id > :after ORDER BY id LIMIT :n

-- query moves_newest() -> id int
SELECT coalesce(max(id), 0) AS id FROM run_moves

-- ======== notices ========

-- The owners with waiting notices and the time when the first notice of each is due. Skips from
-- owner to owner in the index.
-- query notices_owners() -> uid int, due_at int
WITH RECURSIVE owner(uid) AS (
	SELECT (SELECT uid FROM notices WHERE state = NOTICE_WAITING ORDER BY uid LIMIT 1)
	UNION ALL
	SELECT (SELECT next.uid FROM notices AS next WHERE next.state = NOTICE_WAITING AND next.uid > owner.uid
		ORDER BY next.uid LIMIT 1)
	FROM owner WHERE owner.uid IS NOT NULL)
SELECT owner.uid, (SELECT notices.due_at FROM notices
	WHERE notices.state = NOTICE_WAITING AND notices.uid = owner.uid ORDER BY notices.due_at LIMIT 1) AS due_at
FROM owner WHERE owner.uid IS NOT NULL

-- Whether there is a waiting notice, which costs less than notices_owners.
-- query notices_any() -> uid int
SELECT uid FROM notices WHERE state = NOTICE_WAITING ORDER BY uid LIMIT 1

-- The number of waiting notices of an owner, counted up to n.
-- query notices_waiting(uid int, n int) -> n int
SELECT count(*) AS n FROM (SELECT 1 FROM notices WHERE state = NOTICE_WAITING AND uid = :uid LIMIT :n) AS waiting

-- query notices_drop(before int, n int) -> state int
DELETE FROM notices WHERE id IN (SELECT id FROM notices
	WHERE state <> NOTICE_WAITING AND done_at < :before ORDER BY done_at LIMIT :n)
RETURNING state

-- define notice_row = id int, job int, job_name text, run int, uid int, owner text, what text, channel text, state int,
--	tries int, created_at int, due_at int, done_at int, detail text, error text

-- define notice_columns = notices.id, notices.job, jobs.name AS job_name, notices.run, notices.uid, jobs.owner, notices.what,
--	notices.channel, notices.state, notices.tries, notices.created_at, notices.due_at, notices.done_at, notices.detail,
--	notices.error

-- query notice_page(before int, n int) -> {notice_row}
SELECT {notice_columns} FROM notices LEFT JOIN jobs ON jobs.id = notices.job
WHERE notices.id < :before ORDER BY notices.id DESC LIMIT :n

-- query notice_page_uid(uid int, before int, n int) -> {notice_row}
SELECT {notice_columns} FROM notices LEFT JOIN jobs ON jobs.id = notices.job
WHERE notices.uid = :uid AND notices.id < :before ORDER BY notices.id DESC LIMIT :n

-- query notice_page_failed(before int, n int) -> {notice_row}
SELECT {notice_columns} FROM notices LEFT JOIN jobs ON jobs.id = notices.job
WHERE notices.state = NOTICE_FAILED AND notices.id < :before ORDER BY notices.id DESC LIMIT :n

-- query health_get(job int) -> bad int, since int, slot int, last_success int, typical int
SELECT bad, since, slot, last_success, typical FROM job_health WHERE job = :job

-- query notice_node(id text) -> name text
SELECT name FROM nodes WHERE id = :id

-- query notice_spec(job int, revision int) -> spec text
SELECT spec FROM job_revisions WHERE job = :job AND revision = :revision

-- ======== nodes ========

-- query node_closed(id text) -> closed_at int
SELECT closed_at FROM nodes WHERE id = :id AND closed_at <> 0

-- A node of this name on another machine that is alive or has runs under a valid run lease. A node
-- with the same machine ID that has not renewed its lease since this machine booted is not another
-- machine.
-- query node_elsewhere(name text, boot text, machine text, uptime int) -> host text
SELECT host FROM nodes
WHERE name = :name AND closed_at = 0 AND boot <> '' AND boot <> :boot
	AND (alive_until > {clock} OR (runs_until > {clock} AND EXISTS (SELECT 1 FROM runs
		WHERE runs.state IN (RUN_CLAIMED, RUN_RUNNING) AND runs.state <> RUN_SUCCEEDED AND runs.node = nodes.id)))
	AND NOT (machine <> '' AND machine = :machine AND renewed_at < {clock} - :uptime)
ORDER BY opened_at DESC LIMIT 1

-- Other daemons of this name on this machine with a valid lease.
-- query node_rivals(name text, id text, boot text) -> spawner text
SELECT spawner FROM nodes WHERE name = :name AND id <> :id AND closed_at = 0 AND alive_until > {clock} AND boot = :boot
ORDER BY opened_at DESC LIMIT 16

-- query nodes_displace(name text, id text, now int)
UPDATE nodes SET closed_at = :now WHERE name = :name AND id <> :id AND closed_at = 0

-- query node_close(id text, now int, left_runs text, guarded int, run_ttl int)
UPDATE nodes SET closed_at = :now, left_runs = :left_runs, guarded = :guarded, runs_until = {clock} + :run_ttl
WHERE id = :id AND closed_at = 0

-- query node_renew(id text, ttl int, run_ttl int, guarded int, skew int) -> now int
UPDATE nodes SET alive_until = {clock} + :ttl, runs_until = {clock} + :run_ttl, renewed_at = {clock}, guarded = :guarded, skew = :skew
WHERE id = :id AND closed_at = 0
RETURNING {clock} AS now

-- query node_order(name text) -> draining int, resign_term int
SELECT draining, resign_term FROM node_orders WHERE name = :name

-- query node_ever(name text) -> known int
SELECT count(*) AS known FROM nodes WHERE name = :name

-- query node_order_put(name text, draining int, resign_term int)
INSERT INTO node_orders (name, draining, resign_term) VALUES (:name, :draining, :resign_term)
ON CONFLICT (name) DO UPDATE SET draining = excluded.draining, resign_term = excluded.resign_term

-- query nodes_live() -> id text, name text, draining int, labels text
SELECT nodes.id, nodes.name, coalesce(node_orders.draining, 0) AS draining, nodes.labels
FROM nodes LEFT JOIN node_orders ON node_orders.name = nodes.name
WHERE nodes.closed_at = 0 AND nodes.alive_until > {clock} ORDER BY nodes.name, nodes.id

-- query runs_queued_of(job int) -> queue text, n int
SELECT queue, count(*) AS n FROM runs WHERE job = :job AND ended_at = 0 AND state = RUN_QUEUED GROUP BY queue

-- query node_alive(id text) -> alive int
SELECT alive_until AS alive FROM nodes WHERE id = :id AND closed_at = 0 AND alive_until > {clock}

-- Other live nodes, and writers of earlier versions that were active since a time (store_private.h).
-- query nodes_others(id text, since int) -> n int, older int, numbered int
SELECT count(*) AS n, (SELECT count(*) FROM writers WHERE at >= :since AND id NOT LIKE '2-%') AS older,
	(SELECT count(*) FROM meta WHERE key = 'events_base') AS numbered
FROM nodes WHERE closed_at = 0 AND alive_until > {clock} AND id <> :id

-- query runs_to_end(node text) -> id int, job int, fence int, state int
SELECT id, job, fence, state FROM runs WHERE cancel_asked = 1 AND ended_at = 0 AND node = :node ORDER BY id

-- ======== the leader ========

-- query leader_worked(at int)
UPDATE meta SET value = CAST(:at AS TEXT) WHERE key = 'led_at'

-- Sets the time of the last leader work when a node takes the leader lease, so that it is not
-- judged by its predecessor's.
-- query leader_began(holder text, at int)
UPDATE meta SET value = CAST(:at AS TEXT)
WHERE key = 'led_at' AND EXISTS (SELECT 1 FROM leases WHERE leases.name = 'leader' AND leases.holder = :holder)

-- query leader_renew(holder text, ttl int) -> term int
UPDATE leases SET until = {clock} + :ttl WHERE name = 'leader' AND holder = :holder
	AND EXISTS (SELECT 1 FROM nodes WHERE nodes.id = :holder AND nodes.closed_at = 0)
RETURNING term

-- Frees the leader lease of a node that is drained or was asked to resign.
-- query leader_yield(holder text, name text, resigns int) -> term int
UPDATE leases SET holder = '', until = 0
WHERE leases.name = 'leader' AND holder = :holder AND (:resigns = 1 OR EXISTS (SELECT 1 FROM node_orders
	WHERE node_orders.name = :name AND (draining = 1 OR resign_term >= leases.term)))
RETURNING term

-- query leader_drop(holder text) -> term int
UPDATE leases SET holder = '', until = 0 WHERE name = 'leader' AND holder = :holder
RETURNING term

-- query segments_all() -> segment int, holder text
SELECT segment, holder FROM segments ORDER BY segment

-- query segments_of(holder text) -> segment int
SELECT segment FROM segments WHERE holder = :holder

-- After a boot: the clock of leases starts again at 0, and the holders of leases have ended.
-- query leases_void()
UPDATE nodes SET alive_until = 0, runs_until = 0 WHERE closed_at = 0

-- query leader_void()
UPDATE leases SET until = 0

-- ======== output relays between nodes ========

-- The live engine of the node whose engine ':node' recorded the output; NULL: none.
-- query relay_holder(node text) -> name text, holder text
SELECT was.name, (SELECT nodes.id FROM nodes WHERE nodes.name = was.name AND nodes.closed_at = 0 AND nodes.alive_until > {clock}
	ORDER BY nodes.opened_at DESC LIMIT 1) AS holder
FROM nodes AS was WHERE was.id = :node

-- query relay_load(holder text) -> n int
SELECT count(*) AS n FROM relays WHERE holder = :holder AND until > {clock}

-- query relay_add(id int, reader text, holder text, run int, attempt int, start int, tail int, follow int, ttl int)
INSERT INTO relays (id, reader, holder, run, attempt, start, tail, follow, taken, until)
VALUES (:id, :reader, :holder, :run, :attempt, :start, :tail, :follow, 0, {clock} + :ttl)

-- query relay_keep(id int, follow int, ttl int) -> holder text
UPDATE relays SET follow = :follow, until = {clock} + :ttl WHERE id = :id
RETURNING holder

-- query relay_reader(id int, holder text) -> reader text
SELECT reader FROM relays WHERE id = :id AND holder = :holder AND until > {clock}

-- query relay_part_put(relay int, number int, at int, total int, dropped int, last int, note text, data text)
INSERT INTO relay_parts (relay, number, at, total, dropped, last, note, data)
VALUES (:relay, :number, :at, :total, :dropped, :last, :note, :data)
ON CONFLICT DO NOTHING

-- query relay_part_take(relay int) -> number int, at int, total int, dropped int, last int, note text, data text
DELETE FROM relay_parts
WHERE relay = :relay AND number = (SELECT min(first.number) FROM relay_parts AS first WHERE first.relay = :relay)
RETURNING number, at, total, dropped, last, note, data

-- query relay_taken(id int, number int, ttl int) -> holder text
UPDATE relays SET taken = :number, until = {clock} + :ttl WHERE id = :id
RETURNING holder

-- query relay_drop(id int) -> holder text
DELETE FROM relays WHERE id = :id
RETURNING holder

-- query relay_parts_drop(relay int)
DELETE FROM relay_parts WHERE relay = :relay

-- query relays_to_serve(holder text, n int) -> id int, run int, attempt int, start int, tail int, follow int, taken int
SELECT id, run, attempt, start, tail, follow, taken FROM relays WHERE holder = :holder AND until > {clock} ORDER BY id LIMIT :n

-- query relays_to_read(reader text) -> id int, ready int, alive int
SELECT relays.id, (SELECT count(*) FROM relay_parts WHERE relay_parts.relay = relays.id) AS ready,
	(SELECT count(*) FROM nodes WHERE nodes.id = relays.holder AND nodes.closed_at = 0 AND nodes.alive_until > {clock}) AS alive
FROM relays WHERE relays.reader = :reader

-- Requests that were not renewed in time, or whose reader is closed.
-- query relays_prune()
DELETE FROM relays
WHERE until <= {clock} OR NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = relays.reader AND nodes.closed_at = 0)

-- query relay_parts_prune()
DELETE FROM relay_parts WHERE NOT EXISTS (SELECT 1 FROM relays WHERE relays.id = relay_parts.relay)

-- ======== retention ========

-- Ended jobs, oldest end first.
-- query prune_jobs(before int, after_at int, after int, n int) -> id int, updated_at int
SELECT id, updated_at FROM jobs
WHERE state >= JOB_FINISHED AND updated_at < :before AND (updated_at, id) > (:after_at, :after)
ORDER BY updated_at, id LIMIT :n

-- query prune_job_kept(job int, dead_before int) -> run int
SELECT id AS run FROM runs WHERE job = :job AND (ended_at = 0 OR dead_at >= :dead_before) LIMIT 1

-- query prune_slots(before int, after_slot int, after int, n int) -> id int, job int, slot int, job_state int
SELECT runs.id, runs.job, runs.slot,
	coalesce((SELECT jobs.state FROM jobs WHERE jobs.id = runs.job), JOB_REMOVED) AS job_state
FROM runs WHERE slot < :before AND (slot, id) > (:after_slot, :after)
ORDER BY slot, id LIMIT :n

-- The runs of one owner. A job with a key is reported as active, because its key must stay known
-- for a while.
-- query prune_slots_of(uid int, after_slot int, after int, n int) -> id int, job int, slot int, job_state int
SELECT runs.id, runs.job, runs.slot,
	coalesce((SELECT CASE WHEN jobs.key IS NULL THEN jobs.state ELSE JOB_ACTIVE END FROM jobs WHERE jobs.id = runs.job),
		JOB_REMOVED) AS job_state
FROM runs WHERE uid = :uid AND (slot, id) > (:after_slot, :after)
ORDER BY slot, id LIMIT :n

-- Removed jobs of one owner that never ran.
-- query prune_removed_of(uid int, after int, n int) -> id int
SELECT id FROM jobs
WHERE uid = :uid AND state = JOB_REMOVED AND id > :after AND key IS NULL
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.job = jobs.id)
ORDER BY id LIMIT :n

-- query prune_nth(job int, n int) -> slot int
SELECT slot FROM runs WHERE job = :job ORDER BY slot DESC, kind DESC LIMIT 1 OFFSET :n

-- query prune_runs_of(job int, before int, dead_before int, n int) -> id int
SELECT id FROM runs WHERE job = :job AND slot < :before AND ended_at <> 0 AND dead_at < :dead_before
ORDER BY slot, kind LIMIT :n

-- query events_prune(before int, n int) -> id int
DELETE FROM events WHERE id IN (SELECT oldest.id FROM (SELECT id, at FROM events ORDER BY id LIMIT :n) AS oldest
	WHERE oldest.at < :before)
RETURNING id

-- ======== queues and limits ========

-- query limits_all(scope text) -> key text, running int, weight int, rate_n int, rate_per int, rate_burst int
SELECT key, running, weight, rate_n, rate_per, rate_burst FROM limits WHERE scope = :scope ORDER BY key

-- query limit_put(scope text, key text, running int, weight int, rate_n int, rate_per int, rate_burst int)
INSERT INTO limits (scope, key, running, weight, rate_n, rate_per, rate_burst)
VALUES (:scope, :key, :running, :weight, :rate_n, :rate_per, :rate_burst)
ON CONFLICT (scope, key) DO UPDATE SET running = excluded.running, weight = excluded.weight, rate_n = excluded.rate_n,
	rate_per = excluded.rate_per, rate_burst = excluded.rate_burst

-- query limit_drop(scope text, key text)
DELETE FROM limits WHERE scope = :scope AND key = :key

-- query bucket_drop(scope text, key text)
DELETE FROM buckets WHERE scope = :scope AND key = :key

-- query queue_seen(key text) -> key text
SELECT key FROM limits WHERE scope = 'queue' AND key = :key

-- query owner_queued(uid int, n int) -> n int
SELECT count(*) AS n FROM (SELECT 1 FROM limits CROSS JOIN runs
	WHERE limits.scope = 'queue' AND runs.queue = limits.key AND runs.uid = :uid AND runs.state = RUN_QUEUED
		AND runs.hold = 0 LIMIT :n) AS waiting

-- ======== check and restore ========

-- query check_jobs() -> state int, queue text, n int
SELECT state, queue, count(*) AS n FROM jobs GROUP BY state, queue

-- query check_runs() -> state int, queue text, n int
SELECT state, queue, count(*) AS n FROM runs GROUP BY state, queue

-- query check_owners() -> state int, queue text, n int
SELECT uid AS state, '' AS queue, count(*) AS n FROM jobs WHERE state < JOB_FINISHED GROUP BY uid

-- query check_active() -> state int, queue text, n int
SELECT uid AS state, queue, count(*) AS n FROM runs WHERE state IN (RUN_CLAIMED, RUN_RUNNING) GROUP BY uid, queue

-- query check_dead() -> state int, queue text, n int
SELECT count(*) * 0 AS state, '' AS queue, count(*) AS n FROM runs WHERE dead_at <> 0

-- query counters_clear()
DELETE FROM counters

-- Runs that were running when the backup was made are lost: their outcome is unknown.
-- query restore_runs(now int)
UPDATE runs SET state = RUN_LOST, reason = 'restored', ended_at = :now
WHERE state IN (RUN_CLAIMED, RUN_RUNNING)

-- query restore_attempts(now int)
UPDATE attempts SET outcome = ATTEMPT_LOST, ended_at = :now WHERE outcome = ATTEMPT_RUNNING

-- query restore_places()
DELETE FROM running_jobs WHERE run NOT IN (SELECT id FROM runs WHERE ended_at = 0)

-- query restore_nodes(now int)
UPDATE nodes SET closed_at = :now WHERE closed_at = 0

-- query restore_missed(now int)
UPDATE runs SET state = RUN_SKIPPED, reason = 'missed', hold = 0, ended_at = :now
WHERE state = RUN_QUEUED AND kind = RUN_KIND_SCHEDULE AND attempt = 0 AND due_at <= :now

-- query restore_due(now int, at int)
UPDATE due SET slot = :at WHERE slot <= :now

-- query meta_put(key text, value text)
INSERT INTO meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- query meta_drop(key text)
DELETE FROM meta WHERE key = :key

-- ======== reading ========

-- define run_row = id int, job int, job_name text, uid int, owner text, kind int, state int, reason text,
--	slot int, slot_last int, slot_count int, due_at int, revision int, priority int, queue text,
--	node text, attempt int, lost int, fence int, cancel_asked int, created_at int, claimed_at int,
--	started_at int, ended_at int, exit_code int, term_signal int, dead_at int, failures int,
--	first_start int, hold int, forced int, params text

-- define run_columns = runs.id, runs.job, jobs.name AS job_name, runs.uid, jobs.owner, runs.kind, runs.state,
--	runs.reason, runs.slot, runs.slot_last, runs.slot_count, runs.due_at, runs.revision, runs.priority,
--	runs.queue, runs.node, runs.attempt, runs.lost, runs.fence, runs.cancel_asked, runs.created_at,
--	runs.claimed_at, runs.started_at, runs.ended_at, runs.exit_code, runs.term_signal, runs.dead_at,
--	runs.failures, runs.first_start, runs.hold, runs.forced, runs.params

-- define node_named = (SELECT nodes.name FROM nodes WHERE nodes.id = runs.node) AS node_name

-- query run_get(id int, uid int) -> {run_row}, node_name text
SELECT {run_columns}, {node_named} FROM runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.id = :id AND (:uid < 0 OR runs.uid = :uid)

-- query run_newest() -> id int
SELECT coalesce(max(id), 0) AS id FROM runs

-- Names of the newest 10000 jobs, for suggestions. The limit bounds the scan.
-- query job_names_all(n int) -> name text
SELECT name FROM (SELECT id, name, state FROM jobs ORDER BY id DESC LIMIT 10000) AS newest
WHERE name IS NOT NULL AND state <> JOB_REMOVED
ORDER BY id DESC LIMIT :n

-- query job_created_at(id int) -> created_at int
SELECT created_at FROM jobs WHERE id = :id

-- define job_line = id int, uid int, state int, created_at int, owner text, name text, queue text, key int, tie int,
--	segment int, shown int

-- define job_columns = jobs.id, jobs.uid, jobs.state, jobs.created_at, jobs.owner, jobs.name, jobs.queue

-- Every row of a list by number is shown, and has no sort key.
-- define job_line_columns = {job_columns}, CAST(0 AS BIGINT) AS key, jobs.id AS tie, CAST(0 AS BIGINT) AS segment, jobs.id AS shown

-- query job_page(after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE id > :after ORDER BY id LIMIT :n

-- query job_page_down(before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE id < :before ORDER BY id DESC LIMIT :n

-- query job_page_created(since int, until int, after_at int, after int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE created_at >= :since AND created_at < :until AND (created_at, id) > (:after_at, :after)
ORDER BY created_at, id LIMIT :n

-- query job_page_created_down(since int, until int, before_at int, before int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs
WHERE created_at >= :since AND created_at < :until AND (created_at, id) < (:before_at, :before)
ORDER BY created_at DESC, id DESC LIMIT :n

-- query job_page_prefix(low text, high text, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE name >= :low AND name < :high LIMIT :n

-- ======== jobs in the order of a sort key ========

-- define job_keys = id int, name text, due_slot int, segment int, queued_slot int, queued int, last_slot int, last int

-- define job_key_columns = jobs.id, jobs.name, due.slot AS due_slot, due.segment AS segment, queued.slot AS queued_slot,
--	queued.id AS queued, last.slot AS last_slot, last.id AS last

-- The rows of an index in its order. 'shown' is 0 if the job is at another place of the list. The caller counts such
-- rows too, so that a statement reads a bounded number of rows.

-- query job_sort_name(name text, id int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE (name, id) > (:name, :id) ORDER BY name, id LIMIT :n

-- query job_sort_name_down(name text, id int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE (name, id) < (:name, :id) ORDER BY name DESC, id DESC LIMIT :n

-- Only the index is read: for a pattern that most names do not match.
-- query job_sort_names(name text, id int, n int) -> id int, name text
SELECT id, name FROM jobs WHERE (name, id) > (:name, :id) ORDER BY name, id LIMIT :n

-- query job_sort_names_down(name text, id int, n int) -> id int, name text
SELECT id, name FROM jobs WHERE (name, id) < (:name, :id) ORDER BY name DESC, id DESC LIMIT :n

-- The name so many places after another.
-- query job_names_bound(name text, id int, n int) -> name text, id int
SELECT name, id FROM jobs WHERE (name, id) > (:name, :id) ORDER BY name, id LIMIT 1 OFFSET :n

-- query job_sort_unnamed(id int, n int) -> {job_line}
SELECT {job_line_columns} FROM jobs WHERE name IS NULL AND id > :id ORDER BY name, id LIMIT :n

-- query job_sort_queued(slot int, id int, n int) -> {job_line}
SELECT {job_columns}, runs.slot AS key, runs.id AS tie, CAST(0 AS BIGINT) AS segment,
	CASE WHEN runs.id = {first_queued} THEN runs.id ELSE 0 END AS shown
FROM runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.state = RUN_QUEUED AND runs.state <> RUN_SUCCEEDED AND (runs.slot, runs.id) > (:slot, :id)
ORDER BY runs.slot, runs.id LIMIT :n

-- query job_sort_queued_down(slot int, id int, n int) -> {job_line}
SELECT {job_columns}, runs.slot AS key, runs.id AS tie, CAST(0 AS BIGINT) AS segment,
	CASE WHEN runs.id = {first_queued} THEN runs.id ELSE 0 END AS shown
FROM runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE runs.state = RUN_QUEUED AND runs.state <> RUN_SUCCEEDED AND (runs.slot, runs.id) < (:slot, :id)
ORDER BY runs.slot DESC, runs.id DESC LIMIT :n

-- query job_sort_due(slot int, segment int, id int, n int) -> {job_line}
SELECT {job_columns}, due.slot AS key, due.job AS tie, due.segment AS segment,
	CASE WHEN {has_queued} THEN 0 ELSE due.job END AS shown
FROM due LEFT JOIN jobs ON jobs.id = due.job
WHERE (due.slot, due.segment, due.job) > (:slot, :segment, :id)
ORDER BY due.slot, due.segment, due.job LIMIT :n

-- query job_sort_due_down(slot int, segment int, id int, n int) -> {job_line}
SELECT {job_columns}, due.slot AS key, due.job AS tie, due.segment AS segment,
	CASE WHEN {has_queued} THEN 0 ELSE due.job END AS shown
FROM due LEFT JOIN jobs ON jobs.id = due.job
WHERE (due.slot, due.segment, due.job) < (:slot, :segment, :id)
ORDER BY due.slot DESC, due.segment DESC, due.job DESC LIMIT :n

-- query job_sort_without_next(id int, n int) -> {job_line}
SELECT {job_columns}, CAST(0 AS BIGINT) AS key, jobs.id AS tie, CAST(0 AS BIGINT) AS segment,
	CASE WHEN {has_queued} OR {has_slot} THEN 0 ELSE jobs.id END AS shown
FROM jobs WHERE jobs.id > :id ORDER BY jobs.id LIMIT :n

-- query job_sort_last(slot int, id int, n int) -> {job_line}
SELECT {job_columns}, runs.slot AS key, runs.id AS tie, CAST(0 AS BIGINT) AS segment,
	CASE WHEN runs.id = {last_run} THEN runs.id ELSE 0 END AS shown
FROM runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE (runs.slot, runs.id) > (:slot, :id)
ORDER BY runs.slot, runs.id LIMIT :n

-- query job_sort_last_down(slot int, id int, n int) -> {job_line}
SELECT {job_columns}, runs.slot AS key, runs.id AS tie, CAST(0 AS BIGINT) AS segment,
	CASE WHEN runs.id = {last_run} THEN runs.id ELSE 0 END AS shown
FROM runs LEFT JOIN jobs ON jobs.id = runs.job
WHERE (runs.slot, runs.id) < (:slot, :id)
ORDER BY runs.slot DESC, runs.id DESC LIMIT :n

-- query job_sort_without_last(id int, n int) -> {job_line}
SELECT {job_columns}, CAST(0 AS BIGINT) AS key, jobs.id AS tie, CAST(0 AS BIGINT) AS segment,
	CASE WHEN {has_run} THEN 0 ELSE jobs.id END AS shown
FROM jobs WHERE jobs.id > :id ORDER BY jobs.id LIMIT :n

-- query run_place(id int) -> slot int, kind int, dead_at int, job int
SELECT slot, kind, dead_at, job FROM runs WHERE id = :id

-- The first jobs with a tag.
-- query tag_jobs(key text, value text, n int) -> job int
SELECT job FROM job_tags WHERE key = :key AND value = :value ORDER BY job LIMIT :n

-- Every owner that had this name, the latest first.
-- query owners_named(name text, n int) -> number int
SELECT number FROM owners WHERE name = :name ORDER BY since DESC LIMIT :n

-- The owner number of the newest job whose owner has this name.
-- query owner_of_jobs(owner text) -> uid int
SELECT uid FROM jobs WHERE owner = :owner ORDER BY id DESC LIMIT 1

-- define run_line = id int, uid int, job int, state int, slot int, kind int, queue text

-- define run_line_columns = id, uid, job, state, slot, kind, queue

-- query run_page(since int, slot int, id int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE slot >= :since AND (slot, id) < (:slot, :id) ORDER BY slot DESC, id DESC LIMIT :n

-- query run_page_job(job int, since int, slot int, kind int, n int) -> {run_line}
SELECT {run_line_columns} FROM runs
WHERE job = :job AND slot >= :since AND (slot, kind) < (:slot, :kind)
ORDER BY slot DESC, kind DESC LIMIT :n

-- The slot so many runs after another.
-- query run_density_bound(slot int, until int, n int) -> slot int
SELECT slot FROM runs WHERE slot >= :slot AND slot < :until ORDER BY slot LIMIT 1 OFFSET :n

-- query run_density_bound_uid(uid int, slot int, until int, n int) -> slot int
SELECT slot FROM runs WHERE uid = :uid AND slot >= :slot AND slot < :until ORDER BY slot LIMIT 1 OFFSET :n

-- The runs from 'slot' until 'until' by interval of 'width' since 'since'.
-- query run_density(slot int, until int, since int, width int) -> place int, n int
SELECT (slot - :since) / :width AS place, count(*) AS n FROM runs WHERE slot >= :slot AND slot < :until GROUP BY 1

-- query run_density_uid(uid int, slot int, until int, since int, width int) -> place int, n int
SELECT (slot - :since) / :width AS place, count(*) AS n FROM runs WHERE uid = :uid AND slot >= :slot AND slot < :until GROUP BY 1

-- query run_density_state(state int, uid int, slot int, until int, since int, width int) -> place int, n int
SELECT (slot - :since) / :width AS place, count(*) AS n FROM runs
WHERE state = :state AND state <> RUN_SUCCEEDED AND slot >= :slot AND slot < :until AND (:uid < 0 OR uid = :uid) GROUP BY 1

-- Dead letters are ordered by the time they became dead, which is returned as 'slot'.
-- query run_page_dead(since int, slot int, id int, n int) -> {run_line}
SELECT id, uid, job, state, dead_at AS slot, kind, queue FROM runs
WHERE dead_at <> 0 AND dead_at >= :since AND (dead_at, id) < (:slot, :id)
ORDER BY dead_at DESC, id DESC LIMIT :n

-- query run_page_result(key text, value text, since int, slot int, id int, n int) -> {run_line}
SELECT runs.id, runs.uid, runs.job, runs.state, runs.slot, runs.kind, runs.queue FROM results JOIN runs ON runs.id = results.run
WHERE results.key = :key AND results.value = :value AND results.slot >= :since AND (results.slot, results.run) < (:slot, :id)
ORDER BY results.slot DESC, results.run DESC LIMIT :n

-- ======== dead letters ========

-- query dead_page(since int, until int, after_at int, after int, n int) -> id int, uid int, job int, dead_at int
SELECT id, uid, job, dead_at FROM runs
WHERE dead_at <> 0 AND dead_at >= :since AND dead_at < :until AND (dead_at, id) > (:after_at, :after)
ORDER BY dead_at, id LIMIT :n

-- ======== the state of runs ========

-- The owner of a run whose attempt belongs to this node.
-- query run_state_owner(run int, fence int, node text) -> uid int
SELECT uid FROM runs WHERE id = :run AND fence = :fence AND node = :node AND state IN (RUN_CLAIMED, RUN_RUNNING)

-- query run_state_put(run int, fence int, part int, last int, uid int, data text) -> uid int, size int
INSERT INTO run_states (run, fence, part, last, uid, data) VALUES (:run, :fence, :part, :last, :uid, :data)
RETURNING uid, {state_size}

-- query run_state_drop(run int, first int, fence int) -> uid int, size int
DELETE FROM run_states WHERE run = :run AND fence >= :first AND fence <= :fence RETURNING uid, {state_size}

-- The last attempt whose state is complete.
-- query run_state_last(run int) -> fence int, part int
SELECT fence, part FROM run_states WHERE run = :run AND last = 1 ORDER BY fence DESC LIMIT 1

-- query run_state_get(run int, fence int, part int) -> data text
SELECT data FROM run_states WHERE run = :run AND fence = :fence AND part = :part

-- Runs that have ended, or that are gone.
-- query run_states_over(n int) -> run int
SELECT run FROM run_states
WHERE part = 0 AND coalesce((SELECT runs.ended_at FROM runs WHERE runs.id = run_states.run), 1) <> 0 ORDER BY run LIMIT :n
