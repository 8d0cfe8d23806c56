#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Definitions in files: export, diff, apply.

load daemon

setup() {
	jobctl list -o name --all | xargs -r jobctl rm --yes 2>/dev/null || true
	rm -rf "$HOME/set"
	mkdir "$HOME/set"
}

# outcomes FILE [OPTION...]: the outcome and name of each entry, and the pruned jobs
outcomes() {
	local file=$1
	shift
	jobctl apply -f "$file" "$@" -o json |
		jq -r '(.entries[] | .outcome + " " + .name), (.pruned[] | "pruned " + .name)'
}

@test "an applied file can be applied again without a change" {
	cat >set/a.json <<-'J'
	{"jobs": [
	 {"name": "a", "schedule": "every 15m", "command": ["true"]},
	 {"name": "b", "schedule": "0 2 * * *", "command": ["true"], "priority": 3},
	 {"name": "c", "schedule": "H H * * *", "command": ["true"]},
	 {"name": "d", "schedule": "after-finish 10m", "command": ["true"]},
	 {"name": "e", "schedule": "tomorrow 9am", "command": ["true"]},
	 {"name": "f", "schedule": "manual", "script": "echo hi"},
	 {"name": "g", "command": ["true"]}]}
	J
	[ "$(outcomes set)" = $'created a\ncreated b\ncreated c\ncreated d\ncreated e\ncreated f\ncreated g' ]
	jobctl wait g
	before=$(jobctl list --all -o json | jq -c '[.[] | [.id, .revision, .schedule, .next_at]]')
	sleep 1.1
	run --separate-stderr jobctl apply -f set
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ "$stderr" = "0 created, 0 changed, 7 unchanged, 0 refused, 0 pruned" ]
	[ "$(jobctl list --all -o json | jq -c '[.[] | [.id, .revision, .schedule, .next_at]]')" = "$before" ]
}

@test "only a changed entry gets a revision, and a pause is kept" {
	echo '[{"name":"a","schedule":"every 15m","command":["true"]},{"name":"b","schedule":"every 1h","command":["true"]}]' >set/a.json
	jobctl apply -f set
	jobctl pause a
	next=$(field a 'next_at')
	sed -i 's/"every 15m",/&"priority":7,/' set/a.json
	run --separate-stderr jobctl apply -f set
	[ "$status" -eq 0 ]
	[[ "$output" == "changed    a (job "*"): priority 0 → 7" ]]
	[ "$(jobctl show a -o json | jq -c '[.state, .revision, .priority]')" = '["paused",2,7]' ]
	[ "$(field b revision)" = 1 ]
	jobctl resume a
	[ "$(field a next_at)" = "$next" ]
}

@test "a change by hand is undone without moving the slots" {
	echo '{"name":"a","schedule":"every 15m","command":["true"]}' >set/a.json
	jobctl apply -f set
	schedule=$(field a 'schedule[0]')
	sleep 1.1
	jobctl set a priority=9
	run --separate-stderr jobctl apply -f set
	[[ "$output" == *": priority 9 → 0" ]]
	[ "$(field a 'schedule[0]')" = "$schedule" ]
}

@test "a refused entry refuses all, with its place and the reason" {
	jobctl add -n keep --manual -- true
	cat >set/a.jsonl <<-'J'
	{"name":"good","schedule":"manual","command":["true"]}

	{"name":"keep","schedule":"manual","command":["true"],"priority":4}
	{"name":"bad","schedule":"99 * * * *","command":["true"]}
	{"name":"typo","schedule":"manual","comand":["true"]}
	{"schedule":"manual","command":["true"]}
	{"name":"good","schedule":"manual","command":["true"]}
	J
	run --separate-stderr jobctl apply -f set
	[ "$status" -eq 1 ]
	[[ "$output" == *"refused    bad: "*"[set/a.jsonl:4]"* ]]
	[[ "$output" == *"refused    typo: unknown member 'comand'"*"[set/a.jsonl:5]"* ]]
	[[ "$output" == *"refused    -: a definition needs a name"*"[set/a.jsonl:6]"* ]]
	[[ "$output" == *"refused    good: the name 'good' occurs twice in the set"*"[set/a.jsonl:7]"* ]]
	[ "$stderr" = "1 created, 1 changed, 0 unchanged, 4 refused, 0 pruned; nothing was applied" ]
	run jobctl show good
	[ "$status" -eq 3 ]
	[ "$(jobctl show keep -o json | jq -c '[.priority, .revision]')" = '[0,1]' ]
}

@test "prune removes only jobs that the same set added" {
	jobctl add -n hand --manual -- true
	echo '{"jobs":[{"name":"a","schedule":"manual","command":["true"]},{"name":"b","schedule":"manual","command":["true"]},
		{"name":"hand","schedule":"manual","command":["true"],"priority":1}]}' >set/a.json
	mkdir other
	echo '{"name":"o","schedule":"manual","command":["true"]}' >other/o.json
	jobctl apply -f set
	jobctl apply -f other
	echo '{"jobs":[{"name":"a","schedule":"manual","command":["true"]}]}' >set/a.json
	[ "$(outcomes set --dry-run)" = "unchanged a" ]
	[ "$(outcomes set --prune --dry-run)" = $'unchanged a\npruned b' ]
	run --separate-stderr jobctl apply -f set --prune
	[ "$status" -eq 2 ]
	[[ "$stderr" == *"--prune would remove 1 jobs, and without a terminal it needs --yes"* ]]
	field b id
	[ "$(outcomes set --prune --yes)" = $'unchanged a\npruned b' ]
	run jobctl show b
	[ "$status" -eq 3 ] || [ "$(field b state)" = removed ]
	[ "$(field hand state) $(field o state)" = "active active" ]
	rm -r other
}

@test "a job stays in its set until --adopt moves it" {
	echo '{"set":"one","jobs":[{"name":"a","schedule":"manual","command":["true"]}]}' >one.json
	echo '{"set":"two","jobs":[{"name":"a","schedule":"manual","command":["true"]}]}' >two.json
	jobctl apply -f one.json
	run --separate-stderr jobctl apply -f two.json -o wide
	[ "$status" -eq 0 ]
	[[ "$output" == "unchanged  a (job "*"), member of the set 'one'"* ]]
	run --separate-stderr jobctl apply -f two.json --adopt
	[ "$status" -eq 0 ]
	[[ "$output" == "unchanged  a (job "*"), joins the set" ]]
	echo '{"set":"one","jobs":[]}' >one.json
	[ -z "$(outcomes one.json --prune --yes)" ]
	echo '{"set":"two","jobs":[]}' >two.json
	[ "$(outcomes two.json --prune --yes)" = "pruned a" ]
}

@test "diff shows the lines that differ and has the exit codes of diff(1)" {
	jobctl add -n a --manual -e API_TOKEN=first -- true
	jobctl export >set/a.json
	run --separate-stderr jobctl diff -f set
	[ "$status" -eq 0 ]
	[ -z "$output$stderr" ]
	jobctl set a timeout=1h
	run --separate-stderr jobctl diff -f set
	[ "$status" -eq 1 ]
	[[ "$output" == "changed    a (job "*$'): timeout 1h → 0s\n- timeout = 1h' ]]
	sed -i 's/null/"second"/' set/a.json
	run --separate-stderr jobctl diff -f set
	[[ "$output" == *"env.API_TOKEN changed"* ]]
	[[ "$output" != *first* && "$output" != *second* ]]
	run --separate-stderr jobctl diff -f missing
	[ "$status" -eq 3 ]
}

@test "export writes no secret, and apply keeps the stored value" {
	jobctl add -n a --manual -e DB_PASSWORD=geheim -e PLAIN=x -- true
	run --separate-stderr jobctl export
	[[ "$output" != *geheim* ]]
	[[ "$stderr" == *"are null in 1 definition;"* ]]
	[ "$(jq -c '.jobs[0].env' <<<"$output")" = '{"DB_PASSWORD":null,"PLAIN":"x"}' ]
	[ "$(jobctl export --reveal | jq -r '.jobs[0].env.DB_PASSWORD')" = geheim ]
	jobctl export | sed 's/"PLAIN": "x"/"PLAIN": "y"/' >set/a.json
	jobctl apply -f set
	[ "$(field a env | jq -c .)" = '{"DB_PASSWORD":"geheim","PLAIN":"y"}' ]
	jobctl rm --yes a
	run --separate-stderr jobctl apply -f set
	[ "$status" -eq 1 ]
	[[ "$output" == *"'env.DB_PASSWORD' has no value, and there is no stored one to keep"* ]]
}

@test "export reads patterns, sorts by name and reports jobs without a name" {
	jobctl add -n web-b --manual -- true
	jobctl add -n web-a --manual -- true
	jobctl add -n db --manual -- true
	number=$(jobctl add --manual -- true)
	[ "$(jobctl export 'web-*' | jq -c '[.jobs[].name]')" = '["web-a","web-b"]' ]
	[ "$(jobctl export --format jsonl 2>/dev/null | jq -r .name | tr '\n' ' ')" = "db web-a web-b " ]
	run --separate-stderr jobctl export
	[ "$stderr" = "1 job without a name left out: $number (jobctl set $number name=NAME)" ]
	run --separate-stderr jobctl export 'nothing*'
	[ "$status" -eq 3 ]
	run --separate-stderr jobctl export --format yaml
	[ "$status" -eq 2 ]
}

@test "export to a crontab keeps what a crontab can express" {
	jobctl add -n a --cron '30 2 * * 1-5' --cwd /srv -e A='x y' --retries 2 -- printf '%s' "it's"
	jobctl add -n b --every 15m -- true
	jobctl add -n c --cron '0 3 * * *' --cwd / -- 'echo a | cat'
	jobctl add -n d --cron '0 3 * * *' --tz Asia/Tokyo --cwd / -- true
	run --separate-stderr jobctl export --format crontab
	[ "$output" = "# a
# left out: retries
30 2 * * 1-5 cd /srv && A='x y' printf \\%s 'it'\\''s'
# b: not in this crontab: its schedule is not one of five fields
# c
0 3 * * * cd / && echo a | cat
# d: not in this crontab: its time zone is not that of the machine" ]
	[[ "$stderr" == "jobs: 4; lines: 2;"*": 2" ]]
}

@test "apply reads standard input, lists, single definitions and subdirectories" {
	mkdir -p set/sub set/.git
	echo '{"name":"one","schedule":"manual","command":["true"]}' >set/sub/one.json
	echo '[{"name":"two","schedule":"manual","command":["true"]}]' >set/two.json
	echo 'not JSON' >set/.git/x.json
	echo 'text' >set/README
	run --separate-stderr jobctl apply -f set
	[ "$status" -eq 0 ]
	[[ "$stderr" == "2 created,"*"; 1 files do not end in .json or .jsonl and were ignored" ]]
	jobctl export --format jsonl | jobctl apply -f - 2>out
	[ "$(cat out)" = "0 created, 0 changed, 2 unchanged, 0 refused, 0 pruned" ]
	echo '{"name":"x",' >set/broken.json
	run --separate-stderr jobctl apply -f set
	[ "$status" -eq 2 ]
	[[ "$stderr" == *"set/broken.json: "* ]]
}

@test "the trace context of a submission is not part of a definition" {
	TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 jobctl add -n traced --manual -- true
	[ "$(field traced traceparent)" = 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ]
	jobctl export traced >set/a.json
	[ "$(jq '.jobs[0] | has("traceparent")' set/a.json)" = false ]
	export TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01
	[ "$(outcomes set)" = "unchanged traced" ]
	sed -i 's/"manual"/"@daily"/' set/a.json
	[ "$(outcomes set)" = "changed traced" ]
	[ "$(field traced traceparent)" = 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ]
}
