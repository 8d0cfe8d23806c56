#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Output of runs and waiting for them: log, log -f, wait, exit codes.

load daemon

@test "log writes the original bytes to a file" {
	job=$(jobctl add -- printf 'a\033[31m\r\0\377b')
	jobctl wait "$job"
	[ "$(jobctl log "$job" | od -An -tx1)" = " 61 1b 5b 33 31 6d 0d 00 ff 62" ]
}

@test "log escapes control characters on a terminal unless --raw is given" {
	job=$(jobctl add -- printf 'a\033[2J\tb\nä\377')
	jobctl wait "$job"
	run on_terminal 80 jobctl log "$job"
	[ "${lines[0]}" = $'a\\x1b[2J\tb' ]
	[ "${lines[1]}" = 'ä\xff' ]
	run on_terminal 80 jobctl log --raw "$job"
	[[ "$output" == *$'\033[2J'* ]]
}

@test "log shows the last lines" {
	job=$(jobctl add -- seq 100)
	jobctl wait "$job"
	[ "$(jobctl log -n 3 "$job" | xargs)" = "98 99 100" ]
	[ "$(jobctl log "$job" -n 0 | wc -c)" = 0 ]
	[ "$(jobctl log "$job" -n 1000 | wc -l)" = 100 ]
	[ "$(jobctl log -f -n 2 "$job" | xargs)" = "99 100" ]
}

@test "log of a job shows its newest run, log of a run that run" {
	jobctl add -n counted --every 1s -- 'echo $JOBSCHED_RUN'
	until [ "$(jobctl runs counted --state succeeded -o jsonl | wc -l)" -ge 2 ]; do sleep 0.1; done
	jobctl cancel counted
	newest=$(jobctl runs counted --state succeeded --json | jq '.[0].id')
	oldest=$(jobctl runs counted --state succeeded --json | jq '.[-1].id')
	[ "$(jobctl log counted)" = "$newest" ]
	[ "$(jobctl log "counted#$oldest")" = "$oldest" ]
	[ "$(jobctl log "#$oldest")" = "$oldest" ]
	[ "$(jobctl log "#$oldest" --attempt 1)" = "$oldest" ]
	run jobctl log "#$oldest" --attempt 7
	[ "$status" -eq 3 ]
}

@test "log -f shows output while the run continues" {
	job=$(jobctl add -- "echo one; until [ -e '$DIR/go on' ]; do sleep 0.02; done; echo two")
	jobctl log -f "$job" >"$DIR/followed" 3>&- &
	eventually [ -s "$DIR/followed" ]
	[ "$(cat "$DIR/followed")" = one ]
	touch "$DIR/go on"
	wait $!
	[ "$(cat "$DIR/followed")" = $'one\ntwo' ]
}

@test "log -f waits for a run that has not started" {
	job=$(jobctl add --in 1s -- echo late)
	[ "$(timeout 120 jobctl log -f "$job")" = late ]
}

@test "log of a job that has not run shows the next slot" {
	jobctl add -n notyet --in 1h -- true
	run jobctl log notyet
	[ "$status" -eq 3 ]
	[[ "$output" == *"has not run yet"*"jobctl log -f notyet"* ]]
}

@test "a run without output has an empty log" {
	job=$(jobctl add -- true)
	jobctl wait "$job"
	run jobctl log "$job"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "log reports why a command wrote nothing" {
	job=$(jobctl add -- ./nosuch-program)
	run jobctl wait "$job"
	[ "$status" -eq 10 ]
	[[ "$output" == *"nosuch-program"*"No such file"* ]]
	run --separate-stderr jobctl log "$job"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[[ "$stderr" == *"No such file"* ]]
}

@test "log reports output that was not stored" {
	job=$(jobctl add --output-limit 1000 -- seq 10000)
	jobctl wait "$job"
	run --separate-stderr jobctl log "$job"
	[ "$status" -eq 0 ]
	[[ "$stderr" == *"were not stored"* ]]
	[ "${lines[0]}" = 1 ]
	[ "${lines[-1]}" = 10000 ]
}

@test "wait exits with 0, 10, 11 or 13 depending on the result" {
	ok=$(jobctl add -- true) bad=$(jobctl add -- 'exit 7') slow=$(jobctl add --timeout 1s --grace 1s -- sleep 30)
	run --separate-stderr jobctl wait "$ok"
	[ "$status" -eq 0 ]
	[[ "$stderr" =~ ^run\ $ok#[0-9]+\ succeeded\ after ]]
	run --separate-stderr jobctl wait "$bad"
	[ "$status" -eq 10 ]
	[[ "$stderr" =~ ^run\ $bad#[0-9]+\ failed\ after.*:\ exit\ code\ 7\ \(jobctl\ log\ $bad#[0-9]+\)$ ]]
	run --separate-stderr jobctl wait "$slow"
	[ "$status" -eq 13 ]
	gone=$(jobctl add -- sleep 30)
	jobctl cancel --running "$gone"
	run jobctl wait "$gone"
	[ "$status" -eq 11 ]
}

@test "wait exits with 12 for a job that never ran" {
	job=$(jobctl add --in 1h -- true)
	jobctl cancel "$job"
	run jobctl wait "$job"
	[ "$status" -eq 12 ] || [ "$status" -eq 11 ]
}

@test "wait --propagate exits with the exit code of the command" {
	bad=$(jobctl add -- 'exit 7') killed=$(jobctl add -- 'kill -9 $$')
	run jobctl wait --propagate "$bad"
	[ "$status" -eq 7 ]
	run jobctl wait --propagate "$killed"
	[ "$status" -eq 137 ]
	[[ "$output" == *SIGKILL* ]]
}

@test "wait --propagate exits with 0 for a code declared a success" {
	job=$(jobctl add --on-exit '0|3=ok' -- 'exit 3')
	run jobctl wait --propagate "$job"
	[ "$status" -eq 0 ]
}

@test "wait reports a planned run that was withdrawn" {
	job=$(jobctl add --in 4s -- true)
	until [ -n "$(jobctl runs "$job" --planned -o name)" ]; do sleep 0.1; done
	ref=$(jobctl runs "$job" --planned -o name)
	jobctl wait --timeout 120s "$ref" > "$BATS_TEST_TMPDIR/said" 2>&1 &
	eventually has_socket $!
	sleep 0.3
	jobctl set "$job" in=1h
	wait $! && status=0 || status=$?
	[ "$status" -eq 12 ]
	[[ "$(cat "$BATS_TEST_TMPDIR/said")" == *"withdrawn"* ]]
}

@test "wait --timeout exits with 8" {
	job=$(jobctl add -- sleep 30)
	run timeout 120 jobctl wait --timeout 300ms "$job"
	[ "$status" -eq 8 ]
	jobctl cancel --running "$job"
	future=$(jobctl add --in 1h -- true)
	run timeout 120 jobctl wait --timeout 300ms "$future"
	[ "$status" -eq 8 ]
}

@test "the exit code is that of the first run that did not succeed" {
	a=$(jobctl add -- true) b=$(jobctl add -- 'exit 7') c=$(jobctl add -- true)
	run jobctl wait "$a" "$b" "$c"
	[ "$status" -eq 10 ]
	[ "${#lines[@]}" -eq 3 ]
	run --separate-stderr jobctl wait -o name "$a" "$b"
	[ "${#lines[@]}" -eq 2 ]
	[ "$(jobctl wait --json "$a" | jq -r '.[0].state')" = succeeded ]
}

@test "wait waits for the next run of a job that has none" {
	job=$(jobctl add --in 1s -- true)
	run timeout 120 jobctl wait "$job"
	[ "$status" -eq 0 ]
}

@test "wait for an unknown job exits with 3" {
	run jobctl wait nosuch
	[ "$status" -eq 3 ]
}

@test "an interrupted wait exits with 130 and does not affect the job" {
	job=$(jobctl add -- sleep 600)
	eventually listed 1 "$job" --state running
	run bash -c "set -m; jobctl wait $job & until ls -l /proc/\$!/fd | grep -q socket; do sleep 0.02; done; kill -INT \$!; wait \$!; echo \$?"
	[ "${lines[-1]}" = 130 ]
	[ "$(jobctl runs "$job" --json | jq -r '.[0].state')" = running ]
	jobctl cancel --running "$job"
}

@test "wait and log -f continue after a restart of the daemon" {
	job=$(jobctl add -- 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done; exit 4')
	jobctl log -f "$job" >"$DIR/followed" 2>/dev/null 3>&- &
	log=$!
	jobctl wait "$job" 2>"$DIR/said" 3>&- &
	wait=$!
	eventually [ -s "$DIR/followed" ]
	eventually has_socket $wait
	sleep 0.5
	kill -9 "$(cat "$DIR/pid")"
	sleep 0.3
	engine_start
	wait $log
	[ "$(xargs <"$DIR/followed")" = "1 2 3 4 5 6" ]
	code=0
	wait $wait || code=$?
	[ "$code" -eq 10 ]
	grep -q "daemon is not reachable" "$DIR/said"
}

@test "log of a job that waits for a retry shows its last attempt" {
	jobctl add -n patient --retries 1 --backoff fixed:1h -- sh -c 'echo tried; exit 3'
	while [ "$(jobctl runs patient -o json | jq -r '.[0] | select(.state == "queued") | .attempt')" != 1 ]; do sleep 0.05; done
	[ "$(jobctl log patient)" = tried ]
	jobctl cancel patient
}
