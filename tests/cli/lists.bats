#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Lists of jobs and runs: filters, pages, formats, and nothing raw on a terminal.

load daemon

setup_file() {
	daemon_start
	for i in 1 2 3; do
		jobctl add -n "web-$i" -t team=web -t n=$i --in ${i}h -- echo "$i"
	done
	jobctl add -n db-1 -t team=db --in 30m -- true
	jobctl add -n evil --in 2d -- printf $'\033[2J\033]52;c;eA==\a\r\u202e'
	jobctl add -n good -- true
	jobctl add -n bad -- 'exit 3'
	jobctl wait good bad || true
	jobctl cancel web-3
}

@test "patterns choose jobs by name or number" {
	[ "$(jobctl list 'web-*' -o name | xargs)" = "web-1 web-2 web-3" ]
	[ "$(jobctl list web-1 db-1 -o name | xargs)" = "web-1 db-1" ]
	[ "$(jobctl list "$(field db-1 id)" -o name)" = db-1 ]
	[ -z "$(jobctl list 'nothing*' -o name)" ]
}

@test "filters choose jobs by state, tag and time" {
	[ "$(jobctl list --state cancelled -o name)" = web-3 ]
	[ "$(jobctl list --state cancelled,finished -o name | sort | xargs)" = "bad good web-3" ]
	[ "$(jobctl list --state cancelled --state finished -o name | wc -l)" = 3 ]
	[ "$(jobctl list --tag team=db -o name)" = db-1 ]
	[ "$(jobctl list --tag team=web --tag n=2 -o name)" = web-2 ]
	[ "$(jobctl list --until 1h -o name)" = "" ]
	[ "$(jobctl list --since 1h -o name | wc -l)" = "$(jobctl list -o name | wc -l)" ]
	[ "$(jobctl list --owner "$(id -un)" -o name | wc -l)" = "$(jobctl list -o name | wc -l)" ]
}

@test "lists can be sorted and limited" {
	[ "$(jobctl list 'web-*' db-1 --sort next -o name | xargs)" = "db-1 web-1 web-2 web-3" ]
	[ "$(jobctl list --all --sort name -o name | head -1)" = bad ]
	[ "$(jobctl list --all --sort last -o name | head -2 | sort | xargs)" = "bad good" ]
	[ "$(jobctl list --limit 2 -o name | wc -l)" = 2 ]
}

@test "what is over is shown on request" {
	run on_terminal 100 "jobctl list >/dev/null"
	[ -z "$output" ]
	run on_terminal 100 "jobctl list | cat; jobctl list"
	[[ "$output" == *"finished and cancelled jobs are not shown (jobctl list --all)"* ]]
	[ -z "$(jobctl list -o name | grep -xE "good|bad|web-3")" ]
	[ "$(jobctl list --all -o name | grep -xcE "good|bad|web-3")" = 3 ]
	jobctl add -n gone --in 1h -- true
	jobctl rm -y gone
	[ -z "$(jobctl list gone -o name)" ]
	[ "$(jobctl list gone --all -o name)" = gone ]
}

@test "json is one array, jsonl one object a line, and both have the same" {
	jobctl list --all --json | jq -e 'type == "array" and length > 5'
	[ "$(jobctl list --json | jq -c '.[] | .id')" = "$(jobctl list -o jsonl | jq -c .id)" ]
	[ "$(jobctl list 'nothing*' --json)" = "[]" ]
	[ "$(jobctl list 'nothing*' -o jsonl)" = "" ]
	[ "$(jobctl list web-1 --json | jq -c '.[0] | keys')" = "$(jobctl show web-1 --json | jq -c keys)" ]
}

@test "csv has a header and quotes what needs it" {
	jobctl add -n csv --in 1h -- echo 'a,"b"'
	run jobctl list csv -o csv
	[ "${#lines[@]}" -eq 2 ]
	[[ "${lines[0]}" == id,name,state,* ]]
	[[ "${lines[1]}" == *'"echo '"'"'a,""b""'"'"'"' ]]
}

@test "an interval is shown as it was typed" {
	jobctl add -n often --every 90m -- true
	run jobctl list often
	[[ "${lines[1]}" == *"every 1h30m  true" ]]
}

@test "tables off a terminal have whole times and are not cut" {
	jobctl add -n wide --in 1h -- echo "$(printf 'x%.0s' {1..300})"
	run jobctl list wide
	[ "${#lines[@]}" -eq 2 ]
	[[ "${lines[0]}" =~ ^\ *ID\ +NAME\ +STATE\ +NEXT ]]
	[ "${#lines[1]}" -gt 300 ]
	[[ "${lines[1]}" =~ 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T ]]
	[[ "${lines[1]}" != *$'\033'* ]]
	[ "$(jobctl list wide -o wide | head -1 | wc -w)" -gt "$(wc -w <<<"${lines[0]}")" ]
}

@test "tables on a terminal are cut to it and have relative times" {
	run on_terminal 60 "NO_COLOR=1 jobctl list 2>/dev/null"
	[[ "$output" == *"in 29m"* || "$output" == *"in 30m"* ]]
	for line in "${lines[@]}"; do
		[ "${#line}" -le 60 ]
	done
}

@test "colour is only an addition" {
	run on_terminal 100 "jobctl list --state active"
	[[ "$output" == *$'\033[32mactive\033[0m'* ]]
	run on_terminal 100 "NO_COLOR=1 jobctl list --state active"
	[[ "$output" != *$'\033['* ]]
	run on_terminal 100 "jobctl list --state active --color never"
	[[ "$output" != *$'\033['* ]]
	run jobctl list --state active --color always
	[[ "$output" == *$'\033[32mactive\033[0m'* ]]
	run jobctl list --state active
	[[ "$output" != *$'\033['* ]]
}

@test "control characters of a job never come out raw" {
	for format in table wide json jsonl name; do
		run jobctl list evil -o $format
		[[ "$output" != *$'\033'* && "$output" != *$'\a'* && "$output" != *$'\r'* && "$output" != *$'\u202e'* ]]
	done
	run jobctl list evil
	[[ "$output" == *'\033[2J'* ]]
	run jobctl show evil
	[[ "$output" != *$'\033'* && "$output" != *$'\u202e'* ]]
	run on_terminal 200 "NO_COLOR=1 jobctl list evil -o csv"
	[[ "$output" != *$'\033'* && "$output" != *$'\u202e'* ]]
}

@test "runs are listed newest first, filtered and limited" {
	[ "$(jobctl runs good bad -o jsonl | jq -r .state | xargs)" = "succeeded failed" ]
	[ "$(jobctl runs --failed -o name)" = "bad#$(jobctl runs bad --json | jq '.[0].id')" ]
	[ "$(jobctl runs --state succeeded -o jsonl | jq -r .job_name | xargs)" = good ]
	[ "$(jobctl runs --json | jq -c '[.[].id] == ([.[].id] | sort | reverse)')" = true ]
	[ "$(jobctl runs --until 1h -o name)" = "" ]
	run jobctl runs bad
	[[ "${lines[1]}" == bad#*failed*"exit code 3" ]]
}

@test "pages follow each other through the cursor" {
	for i in $(seq 12); do
		jobctl add -n paged$i -- true 2>/dev/null
	done
	jobctl wait paged{1..12} 2>/dev/null
	first=$(jobctl runs --limit 5 -o name 2>"$DIR/more")
	cursor=$(sed -n 's/.*--cursor \([^,]*\),.*/\1/p' "$DIR/more")
	[ -n "$cursor" ]
	second=$(jobctl runs --limit 5 --cursor "$cursor" -o name 2>/dev/null)
	all=$(jobctl runs --limit 0 -o name 2>"$DIR/nomore")
	[ ! -s "$DIR/nomore" ]
	[ "$(printf '%s\n%s' "$first" "$second")" = "$(head -10 <<<"$all")" ]
}

@test "list --watch comes again" {
	run timeout 3 jobctl list web-1 --watch
	[ "$(grep -c web-1 <<<"$output")" -eq 2 ]
}
