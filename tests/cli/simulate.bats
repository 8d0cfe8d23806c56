#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl simulate; tests/unit/core/test_simulate.c tests the computation.

load daemon

# The history is written directly: a run of ten minutes would take ten minutes.
# history JOB SECONDS COUNT: adds successful runs of this duration
history() {
	sqlite3 "$XDG_STATE_HOME/jobsched/jobs.db" "
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $3)
	INSERT INTO runs (job, uid, kind, state, priority, slot, slot_last, slot_count, due_at, revision, attempt, exit_code,
		created_at, started_at, ended_at, queue)
	SELECT id, uid, 0, 3, 0, 1000000000000000 + i * 1000000, 1000000000000000 + i * 1000000, 1, 1, 1, 1, 0, 1,
		1000000000000000, 1000000000000000 + $2 * 1000000, 'default' FROM jobs, n WHERE name = '$1'"
}

setup_file() {
	jobctl_setup
	# the jobs are added by a daemon that is stopped while the history is written
	engine_start
	jobctl queue add narrow --running 1
	jobctl add -n frequent --cron '*/10 * * * *' --tz UTC -- true
	jobctl add -n night --cron '30 2 * * *' --tz Europe/Berlin -- true
	jobctl add -n first --queue narrow --cron '0 12 * * *' --tz UTC -- true
	jobctl add -n second --queue narrow --cron '0 12 * * *' --tz UTC -- true
	jobctl add -n hand --manual -- true
	jobctl add -n off --paused --cron '0 12 * * *' -- true
	end_process "$(cat "$DIR/pid")"
	history frequent 900 6
	history first 3600 3
	engine_start
}

@test "a job whose runs take longer than its interval skips slots" {
	run -0 jobctl simulate --from 2027-05-03T00:00:00Z --days 2 --tz UTC
	[[ ${lines[0]} == "4 jobs, 2027-05-03 00:00 to 2027-05-04, UTC: "* ]]
	[[ $output == *"not simulated: 1 job without slots in this time, 1 job paused without an end"* ]]
	[[ $output == *"frequent: of 288 slots 144 will be skipped, the first at 2027-05-03 00:10; a run takes 15m"* ]]
	[[ $output == *"2 jobs have no successful run yet; a run of these is assumed to take 1.0s (--assume)"* ]]
	grep -qE '^Mon 2027-05-03 +75 +72 +1 ' <<<"$output"
}

@test "a queue with a limit delays runs" {
	run -0 jobctl simulate --from 2027-05-03T00:00:00Z --days 1 --tz UTC
	[[ $output == *"queue narrow (1 at a time): 1 run waits, the first at 2027-05-03 12:00, up to 1h"* ]]
}

@test "a change of the clock names the jobs that have slots in this hour" {
	run -0 jobctl simulate --from 2027-03-25T00:00:00Z --days 7 --tz Europe/Berlin
	[[ $output == *"2027-03-28 Europe/Berlin: the clock skips 60 minutes; 1 job has slots in this time: night (--dst-gap)"* ]]
	grep -qE '^Sun 2027-03-28 .*\+60min$' <<<"$output"
}

@test "the calendar has a line per week" {
	run -0 jobctl simulate --as calendar --from 2027-05-03T00:00:00Z --days 14 --tz UTC
	grep -qE '^2027-05-03 +75! +75! +75! +75! +75! +75! +75!$' <<<"$output"
	grep -qE '^2027-05-10 ' <<<"$output"
}

@test "JSON has the same figures" {
	jobctl simulate --as json --from 2027-05-03T00:00:00Z --days 2 --tz UTC >"$DIR/out"
	[ "$(jq -c '[.jobs, .without_history, .paused, .unscheduled, .complete]' "$DIR/out")" = '[4,2,1,1,true]' ]
	[ "$(jq -c '.overlaps[0] | [.name, .slots, .skipped, .p50]' "$DIR/out")" = '["frequent",288,144,900]' ]
	[ "$(jq -c '[.days[].skipped]' "$DIR/out")" = '[72,72]' ]
	[ "$(jq -c '.limits[] | select(.kind == "queue") | [.name, .delayed, .longest_wait]' "$DIR/out")" = '["narrow",2,3600]' ]
	[ "$(jobctl simulate --json --days 1 | jq '.days | length')" = 1 ]
}

@test "a pattern and a limit select jobs, and a cut list is reported" {
	[ "$(jobctl simulate --as json 'f*' | jq .jobs)" = 2 ]
	run -0 jobctl simulate --limit 2
	[[ $output == *"incomplete: there are more than 2 jobs; give a PATTERN, --owner or a larger --limit"* ]]
	[ "$(jobctl simulate --as json --limit 2 | jq .complete)" = false ]
}

@test "invalid options are refused" {
	run -2 jobctl simulate --days 0
	[ "$output" = "jobctl: --days: '0' is not a whole number from 1 to 366" ]
	run -2 jobctl simulate --as tree
	[ "$output" = "jobctl: --as: 'tree' is not table, calendar or json" ]
	run -2 jobctl simulate --tz Nowhere/Land
	run -2 jobctl simulate --assume soon
}
