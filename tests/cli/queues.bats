#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl queue and jobctl limit.

load daemon

# member QUEUE MEMBER
member() {
	jobctl queue list --json | jq -r ".[] | select(.name == \"$1\") | .$2"
}

@test "the default queue exists and cannot be removed" {
	run jobctl queue list
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == QUEUE*WEIGHT*RUNNING*MAX*QUEUED*JOBS*RATE ]]
	grep -qE '^default +100 ' <<<"$output"
	[ "$output" = "$(jobctl queue)" ]
	run jobctl queue rm default
	[ "$status" -eq 6 ]
	[[ "$output" == *"cannot be removed"* ]]
}

@test "a queue is added once, and set changes only the given limits" {
	run --separate-stderr jobctl queue add night --running 2 --rate 10/1m:3
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ "$stderr" = "added queue 'night': at most 2 running, weight 100, starts 10/1m:3" ]
	run jobctl queue add night
	[ "$status" -eq 6 ]
	[[ "$output" == *"'jobctl queue set night' changes it"* ]]
	jobctl queue set night --weight 300
	[ "$(member night max_running) $(member night weight) $(member night rate)" = "2 300 10/1m:3" ]
	jobctl queue set night --running none --rate none
	[ "$(member night max_running) $(member night weight) $(member night rate)" = "null 300 null" ]
	run jobctl queue set night
	[ "$status" -eq 2 ]
	run jobctl queue set nihgt --weight 1
	[ "$status" -eq 3 ]
	[[ "$output" == *"did you mean 'night'?"* ]]
	[ "$(jobctl queue list -o name | xargs)" = "default night" ]
}

@test "a job for an unknown queue is refused, also with --dry-run" {
	for dry in "" --dry-run; do
		run --separate-stderr jobctl add $dry --queue nihgt -- true
		[ "$status" -eq 2 ]
		[ -z "$output" ]
		[[ "$stderr" == *"no queue 'nihgt'; did you mean 'night'? 'jobctl queue add nihgt' makes a new one" ]]
	done
	run jobctl add --queue elsewhere -- true
	[[ "$output" == *"make it with 'jobctl queue add elsewhere'"* ]]
}

@test "a queue in use cannot be removed; the message has the number of jobs" {
	id=$(jobctl add --queue night --in 1h -- true)
	[ "$(member night jobs) $(member night queued)" = "1 0" ]
	run jobctl queue rm night
	[ "$status" -eq 6 ]
	[[ "$output" == *"'night' is in use: 1 job, 0 runs"* ]]
	jobctl rm --yes "$id"
	run --separate-stderr jobctl queue rm night
	[ "$status" -eq 0 ]
	[ "$stderr" = "removed queue 'night'" ]
	run jobctl queue rm night
	[ "$status" -eq 3 ]
}

@test "limits of an owner can be set and removed" {
	[ "$(jobctl limit list --json)" = "[]" ]
	me=$(id -un)
	run --separate-stderr jobctl limit set "$me" --running 3
	[ "$status" -eq 0 ]
	[ "$stderr" = "set the limits of '$me': at most 3 running" ]
	[ "$(jobctl limit --json | jq -r '.[] | "\(.name) \(.uid) \(.max_running)"')" = "$me $(id -u) 3" ]
	jobctl limit set "$(id -u)" --rate 5/1s
	[ "$(jobctl limit --json | jq -r '.[] | "\(.max_running) \(.rate)"')" = "3 5/1s" ]
	jobctl limit rm "$me"
	[ "$(jobctl limit list --json)" = "[]" ]
	run jobctl limit rm "$me"
	[ "$status" -eq 3 ]
	run jobctl limit set nobody-of-that-name --running 1
	[ "$status" -eq 3 ]
}

@test "messages name the option of a wrong value" {
	for words in "--running 0" "--running many" "--weight 0" "--weight none" "--rate fast" "--rate 1/"; do
		run jobctl queue add other $words
		[ "$status" -eq 2 ]
		[[ "$output" == *"${words%% *}"* ]]
	done
	run jobctl queue add 'a b'
	[ "$status" -eq 2 ]
	run jobctl queue add 12
	[ "$status" -eq 2 ]
	run jobctl limit set ../x --running 1
	[ "$status" -eq 2 ]
	run jobctl queue ad x
	[ "$status" -eq 2 ]
	[ "$output" = "jobctl: no verb 'queue ad'; did you mean 'queue add'?" ]
	run jobctl queue --help
	[ "$status" -eq 0 ]
	grep -q '^  queue rm ' <<<"$output"
}
