#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Completion of command lines in bash, zsh and fish.

load daemon

setup_file() {
	daemon_start
	jobctl add -n backup --cron '0 2 * * *' -- true
	jobctl add -n backtest --manual -- true
	jobctl add -n other --manual -- true
	jobctl queue add night
	jobctl template add tidy --param HOST -- true
	jobctl run other --wait
}

# candidates LINE: the values for the last word of 'jobctl LINE', on one line
candidates() {
	jobctl __complete line "$1" | cut -f1 | tr '\n' ' '
}

# in_bash LINE: the candidates that the script gives to bash
in_bash() {
	LINE="jobctl $1" bash --norc -c '
		source <(jobctl completion bash)
		COMP_LINE=$LINE COMP_POINT=${#LINE}
		# bash splits the words of a completion at blanks, "=" and ":"
		line=${LINE//=/ = }
		read -ra COMP_WORDS <<<"$line"
		[[ $LINE == *" " ]] && COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_jobctl
		echo "${COMPREPLY[*]}"'
}

in_fish() {
	fish --no-config -c 'jobctl completion fish | source; complete -C $argv[1]' "jobctl $1" | cut -f1 | tr '\n' ' '
}

# in_zsh LINE: the line after the tab key, in an interactive zsh on a terminal
in_zsh() {
	LINE="jobctl $1" zsh -f -c '
		zmodload zsh/zpty
		zpty shell zsh -f -i
		zpty -w shell "PS1=; PS2=; unsetopt zle_bracketed_paste 2>/dev/null; autoload -U compinit; compinit -u -D"
		zpty -w shell "source <(jobctl completion zsh); bindkey \"^X\" end-of-line; echo rea\"\"dy"
		local text= got=
		repeat 200; do zpty -r -t shell got && text+=$got || sleep 0.05; [[ $text == *ready* ]] && break; done
		# the line with its completion is given to "print", so that the test sees exactly what was inserted
		zpty -w -n shell "$LINE"$'"'\t\x01'"'"print -r -- BEGIN:"$'"'\n'"'
		text=
		repeat 200; do zpty -r -t shell got && text+=$got || sleep 0.05; [[ $text == *$'"'\n'"'*BEGIN:*$'"'\n'"'* ]] && break; done
		print -r -- "$text"
		zpty -d shell' | tr -d '\r' | sed -n 's/^BEGIN:\(.*\)/\1/p' | tail -1
}

@test "verbs, options and values come from the tables" {
	[ "$(candidates 'expo')" = "export " ]
	[ "$(candidates 'queue ')" = "list add set rm " ]
	[ "$(candidates 'list --st')" = "--state " ]
	[ "$(candidates 'list --state=a')" = "--state=active " ]
	[ "$(candidates 'runs --state succ')" = "succeeded " ]
	[ "$(candidates 'add --overlap ')" = "skip queue replace allow " ]
	[ "$(candidates 'add --on-lost ')" = "rerun fail " ]
	[ "$(candidates "add --cron '0 2 * * *' --dst-fold ")" = "first last both " ]
	[ "$(candidates 'add --tz Europe/Berl')" = "Europe/Berlin " ]
	[ "$(candidates 'set other prio')" = "priority= " ]
	[ "$(candidates 'completion ')" = "bash zsh fish " ]
	[ "$(candidates 'events --what job.canc')" = "job.cancel " ]
	[ "$(candidates 'apply -f ')" = ":files " ]
	[ "$(candidates 'list --owner ')" = ":users " ]
	[ "$(candidates 'add -n x -- ')" = ":commands " ]
	[ "$(candidates 'add -n x -- tar -x')" = ":files " ]
	[ -z "$(candidates '__c')" ]
}

@test "every verb of the help is completed" {
	jobctl --help | sed -nE 's/^  ([a-z-]+( [a-z]+)?)  +.*/\1/p' | sort >"$DIR/verbs"
	[ "$(wc -l <"$DIR/verbs")" -gt 40 ]
	while read -r first second; do
		[[ " $(candidates "$first") " == *" $first "* ]] || { echo "$first is not completed"; return 1; }
		[ -z "$second" ] || [[ " $(candidates "$first $second") " == *" $second "* ]] || { echo "$first $second"; return 1; }
	done <"$DIR/verbs"
}

@test "names of jobs, runs, queues, nodes and templates come from the daemon" {
	[ "$(candidates 'show back')" = "backup backtest " ]
	[ "$(candidates 'log other#')" = "other#1 " ]
	[ "$(candidates 'add --queue n')" = "night " ]
	[ "$(candidates 'queue rm n')" = "night " ]
	[ "$(candidates 'template show ')" = "tidy " ]
	[ "$(candidates 'node drain ')" = "$(jobctl nodes -o json | jq -r '.[0].name') " ]
	[ "$(candidates '--user show othe')" = "other " ]
}

@test "completion is silent and quick without a daemon" {
	run --separate-stderr env JOBSCHED_SOCKET=/nonexistent jobctl __complete line 'show back'
	[ "$status" -eq 0 ]
	[ -z "$output$stderr" ]
	[ -z "$(candidates '--socket /nonexistent show back')" ]
	# a daemon that accepts and does not answer: the process ends itself
	python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(5); print("up", flush=True); time.sleep(60)' "$DIR/mute" >"$DIR/up" 3>&- &
	eventually [ -s "$DIR/up" ]
	SECONDS=0
	run env JOBSCHED_SOCKET="$DIR/mute" timeout 30 jobctl __complete line 'show back'
	[ "$status" -ne 124 ]
	[ "$SECONDS" -lt 20 ]
	kill %1
}

@test "bash completes verbs, values after = and names" {
	[ "$(in_bash 'expo')" = "export" ]
	[ "$(in_bash 'list --state=act')" = "active" ]
	[ "$(in_bash 'list --state ')" = "active paused suspended finished cancelled removed" ]
	[ "$(in_bash 'show back')" = "backup backtest" ]
	[ "$(in_bash 'log other#')" = "other#1" ]
	touch "$HOME/set.json"
	[ "$(in_bash 'apply -f set.j')" = "set.json" ]
	[ "$(in_bash 'limit set roo')" = "root" ]
}

@test "an interactive bash inserts the completion" {
	printf '%s\n' 'source <(jobctl completion bash)' >"$HOME/rc"
	printf 'jobctl vers\t>version\nexit\n' >"$HOME/keys"
	TERM=dumb timeout 60 script -qec "bash --rcfile $HOME/rc -i" /dev/null <"$HOME/keys" >"$DIR/typed" 2>&1 || true
	grep -q '^jobctl ' "$HOME/version" || { cat "$DIR/typed"; return 1; }
}

@test "fish completes verbs, values and names" {
	command -v fish || skip "fish is not installed"
	[ "$(in_fish 'expo')" = "export " ]
	[ "$(in_fish 'list --state=act')" = "--state=active " ]
	[ "$(in_fish 'add --overlap ')" = "allow queue replace skip " ]
	[ "$(in_fish 'show back')" = "backtest backup " ]
	[ "$(in_fish 'log other#')" = "other#1 " ]
}

@test "zsh completes verbs, values and names" {
	command -v zsh || skip "zsh is not installed"
	[ "$(in_zsh 'expo')" = "jobctl export" ]
	[ "$(in_zsh 'list --state=act')" = "jobctl list --state=active" ]
	[ "$(in_zsh 'show othe')" = "jobctl show other" ]
	[ "$(in_zsh 'set other prio')" = "jobctl set other priority=" ]
}
