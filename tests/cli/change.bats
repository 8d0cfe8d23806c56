#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Changing jobs: set, edit, history, undo, templates, --if-exists.

load daemon

setup() {
	unset VISUAL
}

# An editor that runs its argument as a sed script.
editor() {
	export EDITOR="sed -i -e '$1'"
}

@test "set changes only the given fields and reports them" {
	jobctl add -n one --every 1h -e A=1 -t team=a -- echo hi
	run --separate-stderr jobctl set one priority=5 env.B=two tag.team= timeout=90s
	[ "$status" -eq 0 ]
	[[ "$stderr" == "changed job "*" 'one': env.B added, tags.team removed, priority 0 → 5, timeout 0s → 1m30s (revision 2); it runs in "* ]]
	[ "$(jobctl show one -o json | jq -c '[.priority, .env, .tags, .timeout, .revision]')" = '[5,{"A":"1","B":"two"},{},90,2]' ]
	run --separate-stderr jobctl set one priority=5
	[[ "$stderr" == *"already has this definition; nothing was changed" ]]
	jobctl set one priority= env.A=
	[ "$(jobctl show one -o json | jq -c '[.priority, .env]')" = '[0,{"B":"two"}]' ]
}

@test "set accepts schedule options of add, and a command after --" {
	jobctl add -n two --every 1h -- echo hi
	jobctl set two cron='0 2 * * *' cron='0 4 * * *'
	[ "$(jobctl show two -o json | jq -c .schedule)" = '["0 2 * * *","0 4 * * *"]' ]
	jobctl set two -- sh -c 'echo "$1"' sh -x a=b
	[ "$(jobctl show two -o json | jq -c .command)" = '["sh","-c","echo \"$1\"","sh","-x","a=b"]' ]
	jobctl set two -- 'echo a | cat'
	[ "$(jobctl show two -o json | jq -c '[.command, .script]')" = '[[],"echo a | cat"]' ]
}

@test "set refuses unknown keys and says what to type" {
	jobctl add -n three --every 1h -- true
	for words in 'prio=5' 'priority' 'priority=high' 'env=A=b' 'command=x' 'schedule=' 'foo.bar=1' '--dry-run'; do
		run --separate-stderr jobctl set three "$words"
		[ "$status" -eq 2 ]
		[ -n "$stderr" ]
	done
	run jobctl set nojob priority=1
	[ "$status" -eq 3 ]
	run jobctl set --revision 7 three priority=1
	[ "$status" -eq 6 ]
	[[ "$output" == *"at revision 1, not 7"* ]]
}

@test "set --dry-run shows the change and the next slots, and changes nothing" {
	jobctl add -n four --every 1h -- true
	run --separate-stderr jobctl set --dry-run four cron='0 2 * * *'
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == "change        schedule "*" → '0 2 * * *'" ]]
	[ "$(grep -c 'T02:00:00Z' <<<"$output")" -eq 5 ]
	[ "$(jobctl show four -o json | jq .revision)" -eq 1 ]
}

@test "edit opens the definition as lines and applies the edited ones" {
	jobctl add -n five --every 1h -- echo hi
	editor 's/^command.*/command = ["echo", "a b", "\\u00e9"]/'
	jobctl edit five
	[ "$(jobctl show five -o json | jq -c .command)" = '["echo","a b","é"]' ]
	editor 's/^# priority = N.*/priority = 7/'
	run --separate-stderr jobctl edit five
	[[ "$stderr" == *"priority 0 → 7 (revision 3)"* ]]
	editor ''
	run --separate-stderr jobctl edit five
	[ "$stderr" = "nothing was changed" ]
	[ "$(jobctl show five -o json | jq .revision)" -eq 3 ]
}

@test "edit keeps a script of several lines unchanged" {
	printf 'echo one\n\n  echo "END"\nEND\n' | jobctl add -n six --every 1h
	before=$(jobctl show six -o json | jq .script)
	editor 's/^# priority = N.*/priority = 1/'
	jobctl edit six
	[ "$(jobctl show six -o json | jq .script)" = "$before" ]
	editor 's/echo one/echo two/'
	jobctl edit six
	[ "$(jobctl show six -o json | jq -r .script | head -1)" = "echo two" ]
}

@test "edit opens an invalid text again with the error at its top, in a private file" {
	jobctl add -n seven --every 1h -- true
	cat >"$DIR/ed" <<-'EOF'
		#!/bin/sh
		stat -c %a "$1" >>"$DIR/modes"
		head -1 "$1" >>"$DIR/tops"
		if grep -q '^#! ' "$1"; then sed -i 's/^priority.*/priority = 4/' "$1"
		else echo 'priority = many' >>"$1"; fi
	EOF
	chmod +x "$DIR/ed"
	EDITOR="$DIR/ed" jobctl edit seven
	[ "$(jobctl show seven -o json | jq .priority)" -eq 4 ]
	[ "$(sort -u "$DIR/modes")" = 600 ]
	[ "$(wc -l <"$DIR/tops")" -eq 2 ]
	[[ "$(tail -1 "$DIR/tops")" == "#! line "*"'many' is not a whole number" ]]
	[ -z "$(ls /tmp/jobctl-edit-* "${TMPDIR:-/tmp}"/jobctl-edit-* 2>/dev/null)" ]
	editor 's/^priority.*/priority = never/'
	run jobctl edit seven
	[ "$status" -eq 2 ]
	[[ "$output" == *"nothing was changed" ]]
	EDITOR=false run jobctl edit seven
	[ "$status" -eq 2 ]
}

@test "edit does not overwrite a change made by another user meanwhile" {
	jobctl add -n eight --every 1h -- true
	export EDITOR='f() { jobctl set eight priority=9 2>/dev/null; sed -i "s/^# retries = N.*/retries = 3/" "$1"; }; f'
	TMPDIR=$DIR run --separate-stderr jobctl edit eight
	[ "$status" -eq 6 ]
	[[ "$stderr" == *"the edited text is in '$DIR/jobctl-edit-"* ]]
	grep -q '^retries = 3' "$DIR"/jobctl-edit-*
	[ "$(jobctl show eight -o json | jq -c '[.priority, .retries]')" = '[9,0]' ]
}

@test "history shows the author of each change, and undo reverts it" {
	jobctl add -n nine --every 1h -- true
	jobctl set nine priority=1
	jobctl set nine priority=2
	run jobctl history nine
	[ "${#lines[@]}" -eq 4 ]
	[[ "${lines[1]}" =~ ^\ *3\ .*priority\ 1\ →\ 2$ ]]
	[[ "${lines[3]}" =~ ^\ *1\ .*added$ ]]
	[ "$(jobctl history nine --diff 3)" = $'- priority = 1\n+ priority = 2' ]
	jobctl undo nine
	jobctl undo nine
	[ "$(jobctl show nine -o json | jq .priority)" -eq 0 ]
	run jobctl undo nine
	[ "$status" -eq 6 ]
	jobctl undo nine --to 3
	[ "$(jobctl history nine -o json | jq -c '[.[].undo_to]')" = '[3,1,2,null,null,null]' ]
}

@test "a run shows the command of its revision" {
	jobctl add -n ten --wait -- echo first
	run=$(jobctl runs ten -o name)
	jobctl set ten -- echo second
	run jobctl show "$run"
	[[ "$output" == *"revision      1"* ]]
	[[ "$output" == *"command       echo first"* ]]
}

@test "a template creates jobs, each parameter is one argument" {
	jobctl template add backup --param host --param days=7 -t kind=backup -- printf '<%s>' '{host}' --keep '{days}' '{{x}'
	[ "$(jobctl template list -o name)" = backup ]
	run jobctl template show backup
	[[ "$output" == *"params.host  # required"* ]]
	jobctl add --template backup -n b1 --param host="'; rm -rf / #" --wait
	[ "$(jobctl log b1)" = "<'; rm -rf / #><--keep><7><{x}>" ]
	[ "$(jobctl show b1 -o json | jq -c '[.template, .tags]')" = '["backup",{"kind":"backup"}]' ]
	run jobctl add --template backup -n b2
	[ "$status" -eq 2 ]
	[[ "$output" == *"'host'; declared: days, host"* ]]
	run jobctl add --template backup -n b2 --param host=a --param hots=b
	[ "$status" -eq 2 ]
	run jobctl add --template nothing -- true
	[ "$status" -eq 3 ]
	run jobctl template add bad --param x -- 'echo {x}'
	[ "$status" -eq 2 ]
	[[ "$output" == *'$JOBSCHED_PARAM_x'* ]]
	jobctl template rm backup
	run jobctl template rm backup
	[ "$status" -eq 3 ]
}

@test "add --if-exists keeps or replaces the job of the same name" {
	id=$(jobctl add -n eleven --every 1h -- echo a)
	run jobctl add -n eleven --every 1h -- echo b
	[ "$status" -eq 6 ]
	[ "$(jobctl add -n eleven --every 1h --if-exists keep -- echo b)" = "$id" ]
	run --separate-stderr jobctl add -n eleven --every 1h --if-exists replace -- echo a
	[[ "$stderr" == *"already exists; nothing was added" ]]
	run --separate-stderr jobctl add -n eleven --every 1h --if-exists replace -- echo b
	[[ "$stderr" == "replaced job $id 'eleven' (revision 2)"* ]]
	run jobctl add --if-exists maybe -n x -- true
	[ "$status" -eq 2 ]
}
