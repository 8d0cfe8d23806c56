#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Lists of jobs and runs: filters, pages, formats, escaping.

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

@test "patterns select jobs by name or number" {
	[ "$(jobctl list 'web-*' -o name | xargs)" = "web-1 web-2 web-3" ]
	[ "$(jobctl list web-1 db-1 -o name | xargs)" = "web-1 db-1" ]
	[ "$(jobctl list "$(field db-1 id)" -o name)" = db-1 ]
	[ -z "$(jobctl list 'nothing*' -o name)" ]
}

@test "filters select jobs by state, tag and time" {
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
	[ "$(jobctl list 'web-*' --sort -name -o name | xargs)" = "web-3 web-2 web-1" ]
	[ "$(jobctl list 'web-*' --sort -created -o name | xargs)" = "web-3 web-2 web-1" ]
	[ "$(jobctl list 'web-*' --queue default -o name | wc -l)" = 3 ]
	[ "$(jobctl list --queue none -o name)" = "" ]
	[[ "$(on_terminal 80 jobctl list --queue none)" == "no active job matches; "* ]]
	[[ "$(on_terminal 80 jobctl list nosuch)" == "no job matches (jobctl list --all)" ]]
	run -2 jobctl list --state foo
	[[ $output == *"there is no state 'foo'; see States in jobctl(1)" ]]
	run -2 jobctl list --sort size
	[[ $output == *"is not next, name, last or created"* ]]
	[ "$(jobctl list --all --sort last -o name | head -2 | sort | xargs)" = "bad good" ]
	[ "$(jobctl list --limit 2 -o name | wc -l)" = 2 ]
}

@test "ended jobs are shown on request" {
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

@test "json is one array, jsonl one object per line, with equal content" {
	jobctl list --all --json | jq -e 'type == "array" and length > 5'
	[ "$(jobctl list --json | jq -c '.[] | .id')" = "$(jobctl list -o jsonl | jq -c .id)" ]
	[ "$(jobctl list 'nothing*' --json)" = "[]" ]
	[ "$(jobctl list 'nothing*' -o jsonl)" = "" ]
	[ "$(jobctl list web-1 --json | jq -c '.[0] | keys')" = "$(jobctl show web-1 --json | jq -c 'del(.durations) | keys')" ]
}

@test "csv has a header and quotes special characters" {
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

@test "tables to a file have absolute times and are not cut" {
	jobctl add -n wide --in 1h -- echo "$(printf 'x%.0s' {1..300})"
	run jobctl list wide
	[ "${#lines[@]}" -eq 2 ]
	[[ "${lines[0]}" =~ ^\ *ID\ +NAME\ +STATE\ +NEXT ]]
	[ "${#lines[1]}" -gt 300 ]
	[[ "${lines[1]}" =~ 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T ]]
	[[ "${lines[1]}" != *$'\033'* ]]
	[ "$(jobctl list wide -o wide | head -1 | wc -w)" -gt "$(wc -w <<<"${lines[0]}")" ]
}

@test "tables on a terminal are cut to its width and have relative times" {
	run on_terminal 60 "NO_COLOR=1 jobctl list 2>/dev/null"
	[[ "$output" == *"in 29m"* || "$output" == *"in 30m"* ]]
	for line in "${lines[@]}"; do
		[ "${#line}" -le 60 ]
	done
}

@test "on 80 columns the command is cut, not left out" {
	jobctl add -n a-rather-long-name --tz UTC --cron '*/15 9-17 * * MON-FRI' -- /usr/local/bin/report --all --verbose
	run on_terminal 80 "NO_COLOR=1 jobctl list 2>/dev/null"
	[[ "${lines[0]}" == *"SCHEDULE"*"COMMAND" ]]
	[[ "$output" == *"a-rather-"*"*/15 9-17"*"/usr/loc"*"…"* ]]
	for line in "${lines[@]}"; do
		[ "${#line}" -le 80 ]
	done
	jobctl rm -y a-rather-long-name
}

@test "tables have local times with offset, other formats UTC" {
	export TZ=Asia/Kathmandu
	at=$(jobctl list web-1 --json | jq -r '.[0].next_at')
	[[ $at == *Z ]]
	[[ $(jobctl list web-1 -o csv) == *"$at"* ]]
	local=$(date -d "$at" +%Y-%m-%dT%H:%M:%S%:z)
	[[ $local == *+05:45 ]]
	[[ $(jobctl list web-1) == *" $local "* ]]
	[[ $(jobctl show web-1) == *"next          $local"* ]]
	[[ $(jobctl why web-1) == *"$local"* && $(jobctl why web-1) != *"${at%%[.Z]*}"* ]]
}

@test "colour adds only escape sequences" {
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

@test "control characters of a job are escaped in every format" {
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
	[ "$(jobctl runs good bad -o jsonl | jq -r .state | xargs)" = "failed succeeded" ]
	[ "$(jobctl runs --failed -o name)" = "bad#$(jobctl runs bad --json | jq '.[0].id')" ]
	[ "$(jobctl runs --state succeeded -o jsonl | jq -r .job_name | xargs)" = good ]
	[ "$(jobctl runs --json | jq -c '[.[].id] == ([.[].id] | sort | reverse)')" = true ]
	[ "$(jobctl runs --until 1h -o name)" = "" ]
	run jobctl runs bad
	[[ "${lines[1]}" == bad#*failed*"exit code 3" ]]
}

@test "the cursor of a page leads to the next one" {
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

# pages COMMAND: the names of all rows, read page by page with the cursor from standard error
pages() {
	local cursor=

	while :; do
		jobctl "$@" $cursor -o name 2>"$DIR/more" || return 1
		cursor=$(sed -n 's/^there .* more: add \(--cursor [^,]*\).*/\1/p' "$DIR/more")
		[ -n "$cursor" ] || return 0
	done
}

@test "the runs of several jobs share order, limit and cursor" {
	for i in 1 2 3; do
		jobctl run good >/dev/null 2>&1 && jobctl wait good
		jobctl run bad >/dev/null 2>&1 && run -10 jobctl wait bad
	done
	[ "$(jobctl runs good bad --limit 3 -o name 2>/dev/null | wc -l)" = 3 ]
	[ "$(pages runs good bad --limit 3 | wc -l)" = 8 ]
	[ "$(pages runs good bad --limit 3)" = "$(jobctl runs bad good --limit 0 -o name)" ]
	[ "$(pages runs good bad --limit 3)" = "$(jobctl runs --limit 0 -o name | grep -E '^(good|bad)#')" ]
	run -2 jobctl runs $(for i in $(seq 33); do echo good; done)
}

@test "runs are selected by owner and tag of their job" {
	jobctl add -n tagged -t kind=rare -t team=x -- true
	jobctl wait tagged
	[ "$(jobctl runs --tag kind=rare -o jsonl | jq -r .job_name)" = tagged ]
	[ -z "$(jobctl runs --tag kind=none -o name)" ]
	[ "$(jobctl runs --owner "$(id -un)" --limit 0 -o name)" = "$(jobctl runs --limit 0 -o name)" ]
	[ -z "$(jobctl runs --owner nobody-here -o name)" ]
	[ -z "$(jobctl runs good --tag kind=rare -o name)" ]
	run -2 jobctl runs --tag kind
	run -2 jobctl runs --tag a=b --tag c=d
}

@test "a run that is not due yet is listed with --planned only" {
	local i

	jobctl add -n soon --every 2s -- true 2>/dev/null
	for i in $(seq 200); do
		jobctl runs soon --planned --json >"$DIR/planned"
		jobctl runs soon --json >"$DIR/due"
		! jq -e '[.[] | select(.state == "queued" and (.slot | sub("\\..*Z"; "Z") | fromdate) > now)] | length > 0' "$DIR/planned" ||
			break
		sleep 0.1
	done
	[ "$i" -lt 200 ]
	jq -e '[.[] | select(.state == "queued" and (.slot | sub("\\..*Z"; "Z") | fromdate) > now)] == []' "$DIR/due"
	jobctl rm -y soon
}

@test "jobs are listed page by page" {
	[ "$(pages list --all --limit 4)" = "$(jobctl list --all -o name)" ]
	[ "$(pages list 'web-*' db-1 --limit 2 | sort)" = "$(jobctl list 'web-*' db-1 -o name | sort)" ]
	jobctl list --all --limit 1000 2>"$DIR/more" >/dev/null
	! grep cursor "$DIR/more"
	for key in name -name next -next last -last -created; do
		[ "$(pages list --all --sort $key --limit 3)" = "$(jobctl list --all --sort $key -o name)" ]
	done
	run -2 jobctl list --sort name --cursor 3
	[[ $output == *"same sort and order"* ]]
	run -2 jobctl list --cursor x
}

@test "on a terminal one screenful is shown" {
	run script -qec "stty rows 11; jobctl list --all" /dev/null
	[ "$(grep -c 'web-\|db-\|good\|bad' <<<"$output")" -le 6 ]
	[[ $output == *"there are more: add --cursor"*"--limit 0 for all"* ]]
	run script -qec "stty rows 11; jobctl list --all --limit 0" /dev/null
	[[ $output != *"there are more"* ]]
}

@test "list --watch repeats the list" {
	jobctl list web-1 --watch >"$DIR/watched" 3>&- &
	local watcher=$!
	twice() { [ "$(grep -c web-1 "$DIR/watched")" -ge 2 ]; }
	eventually twice
	kill $watcher
}
