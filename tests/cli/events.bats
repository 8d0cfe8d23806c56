#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl events: the audit trail.

load daemon

setup_file() {
	daemon_start
	jobctl add -n backup --every 1h -- true
	jobctl add -n other --every 1h -- true
	jobctl cancel backup
	jobctl add -n once -- 'exit 3'
	jobctl wait once || true
	curl -s --unix-socket "$XDG_RUNTIME_DIR/jobsched/jobsched.sock" -X POST http://x/v1/jobs/999/cancel >/dev/null
	curl -s --unix-socket "$XDG_RUNTIME_DIR/jobsched/jobsched.sock" http://x/v1/jobs \
		-d '{"command":["true"],"env":{"PASSWORD":"sesame"},"timeout":"never"}' >/dev/null
}

two_refusals() {
	[ "$(jobctl events --json | jq '[.[] | select(.result != "ok")] | length')" = 2 ]
}

# The event is committed after the answer was sent, in a batch without a waiting client.
refusals() {
	eventually two_refusals
}

# followed FILE COMMAND: repeats the command until the follower that writes the file shows an event, because the follower
# misses what happened before the daemon had its request.
followed() {
	local file=$1
	shift
	for i in $(seq 600); do
		"$@" "probe$i"
		sleep 0.1
		[ ! -s "$file" ] || return 0
	done
	return 1
}

add_probe() {
	jobctl add -n "$1" --manual -- true
}

remove_probe() {
	add_probe "removed-$1" && jobctl rm -y "removed-$1"
}

@test "events are shown oldest first, with who and what" {
	run -0 jobctl events backup
	[ "${#lines[@]}" = 3 ]
	[[ ${lines[1]} == *"$(id -un)"*job.add*backup*ok* ]]
	[[ ${lines[2]} == *"$(id -un)"*job.cancel*backup*ok* ]]
	[[ $(jobctl events --what job.cancel backup -o csv) == *",unix pid "* ]]
}

@test "--what selects single events or all events of a kind" {
	[ "$(jobctl events --what job.cancel --json | jq '[.[] | select(.result == "ok")] | length')" = 1 ]
	[ "$(jobctl events --what job --json | jq -r '.[].what' | sort -u | xargs)" = "job.add job.cancel" ]
	[ "$(jobctl events --what node,job.cancel --json backup | jq -r '.[].what' | xargs)" = job.cancel ]
	run -2 jobctl events --what job.cancle
	[[ $output == *"there is no event 'job.cancle'"* ]]
}

@test "--limit, --since and --until select events" {
	[ "$(jobctl events --limit 1 -o name | wc -l)" = 1 ]
	[ "$(jobctl events --limit 0 -o name | wc -l)" -gt 3 ]
	[ -z "$(jobctl events --until 1h -o name)" ]
	[ -n "$(jobctl events --since 1h -o name)" ]
	run -2 jobctl events --since nonsense
}

@test "refused requests are recorded without their content" {
	refusals
	[ "$(jobctl events --what job.cancel --json | jq -r '.[] | select(.result == "not_found") | .object')" = 999 ]
	[ "$(jobctl events --what job.add --json | jq -r '.[] | select(.result == "invalid") | .detail')" = timeout ]
	run -1 grep -r sesame "$DIR/log"
	[[ $(jobctl events --json) != *sesame* ]]
}

@test "each event except an added job is a line of the daemon's log" {
	refusals
	grep -q "audit: job.add by '$(id -un)' .*: invalid (timeout)" "$DIR/log"
	run -1 grep "audit: job.add by .*: ok" "$DIR/log"
	grep -q "audit: job.cancel by '$(id -un)' (uid $(id -u)) from unix pid [0-9]* on 'backup': ok job=1$" "$DIR/log"
}

@test "-f shows new events and the ends of runs" {
	timeout 300 jobctl events -f -n 0 --json >"$DIR/followed" 3>&- &
	local follower=$!
	followed "$DIR/followed" add_probe
	jobctl add -n live -- 'exit 7'
	eventually grep -q run.end "$DIR/followed"
	kill $follower
	[ "$(jq -r 'select(.object | startswith("probe") | not) | .what' "$DIR/followed" | xargs)" = "job.add run.end" ]
	[ "$(jq -r 'select(.what == "run.end") | .result + " " + .detail' "$DIR/followed")" = "failed exit code 7" ]
}

@test "-f continues after a restart of the daemon without gaps" {
	timeout 300 jobctl events -f -n 0 --what job.remove --json >"$DIR/resumed" 3>&- &
	local follower=$!
	followed "$DIR/resumed" remove_probe
	jobctl add -n gone1 --every 1h -- true
	jobctl add -n gone2 --every 1h -- true
	jobctl rm -y gone1
	eventually grep -q gone1 "$DIR/resumed"
	end_process "$(cat "$DIR/pid")"
	engine_start
	jobctl rm -y gone2
	eventually grep -q gone2 "$DIR/resumed"
	kill $follower
	[ "$(jq -r '.object | select(startswith("gone"))' "$DIR/resumed" | xargs)" = "gone1 gone2" ]
}
