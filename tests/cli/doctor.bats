#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The checks of 'jobctl doctor'.

load daemon

# result CHECK: its result
result() {
	jobctl doctor "$1" -o json | jq -r '.checks[0].result'
}

@test "a working installation has no findings in the checks that do not depend on the machine" {
	run --separate-stderr jobctl doctor daemon versions spawner config permissions store integrity zoneinfo cluster \
		freeze jobs dead notices mail
	[ "$status" -eq 0 ] || { echo "$output"; return 1; }
	[ "$stderr" = "14 checks of the user's installation: 0 findings" ]
}

@test "all checks are run and listed" {
	run --separate-stderr jobctl doctor -o wide
	[ "$status" -le 1 ]
	for check in daemon units versions spawner net calls config permissions store integrity disk clock zoneinfo cgroup cluster \
		freeze jobs dead notices mail crontabs warrants linger certificates; do
		[[ "$output" == *"  $check: "* ]] || { echo "$check is missing"; return 1; }
	done
	run --separate-stderr jobctl doctor nonsense
	[ "$status" -eq 2 ]
}

@test "each fault is found with the command that mends it" {
	jobctl freeze --reason maintenance
	run --separate-stderr jobctl doctor freeze
	[ "$status" -eq 1 ]
	[ "$output" = "warning   freeze: starting is frozen by an administrator: maintenance
          jobctl thaw" ]
	jobctl thaw
	[ "$(result freeze)" = ok ]

	[ "$(result calls)" = skipped ]
	jobctl add -n function --manual --lambda report --region eu-central-1
	[ "$(result calls)" = ok ]
	jobctl add -n call --manual --http POST https://example.org/ --http-async 2>/dev/null && return 1
	jobctl rm --yes function

	jobctl add -n mailer --manual --notify mail:root@localhost -- true
	mkdir -p "$HOME/.config/jobsched"
	echo 'sendmail = /nonexistent/sendmail' >"$HOME/.config/jobsched/jobschedd.conf"
	[ "$(result mail)" = warning ]
	chmod 666 "$HOME/.config/jobsched/jobschedd.conf"
	run --separate-stderr jobctl doctor permissions
	[[ "$output" == *"chmod go-w '$HOME/.config/jobsched/jobschedd.conf'" ]]
	echo 'max-running = many' >"$HOME/.config/jobsched/jobschedd.conf"
	run --separate-stderr jobctl doctor config
	[ "$status" -eq 1 ]
	[[ "$output" == "error     config: the configuration is not valid: "*"'max-running' is 'many'"* ]]
	rm -r "$HOME/.config"

	jobctl add -n broken --on-exit 1=dead --wait -- false || true
	run --separate-stderr jobctl doctor dead
	[[ "$output" == *"jobctl dead list" ]]
	jobctl dead purge --all --yes
	[ "$(result dead)" = ok ]
}

@test "it works when the daemon is down" {
	end_process "$(cat "$DIR/pid")"
	run --separate-stderr jobctl --user doctor daemon store disk spawner
	[ "$status" -eq 1 ]
	[[ "$output" == "error     daemon: the daemon does not answer: "*"start"* || "$output" == *"jobschedd --user" ]]
	[ "$(jobctl --user doctor store -o json | jq -r '.checks[0].result')" = ok ]
	[ "$(jobctl --user doctor spawner -o json | jq -r '.checks[0].skipped')" = "the daemon does not answer" ]
	cp "$XDG_STATE_HOME/jobsched/jobs.db" "$DIR/kept"
	echo "this is no database at all" >"$XDG_STATE_HOME/jobsched/jobs.db"
	run --separate-stderr jobctl --user doctor store
	[ "$status" -eq 1 ]
	[[ "$output" == *"is not a SQLite store"*"jobctl db restore FILE" ]]
	cp "$DIR/kept" "$XDG_STATE_HOME/jobsched/jobs.db"
	engine_start
	[ "$(result daemon)" = ok ]
}
