# SPDX-License-Identifier: Apache-2.0
# What the tests of the command line share: a daemon of one's own, in directories of its own.
# 'load daemon' at the top of a file gives it one; setup_file after that can say something else.
bats_require_minimum_version 1.5.0

: "${top_builddir:=$BATS_TEST_DIRNAME/../../build}"

# A name in PATH that is the program just built, and an environment with nothing of the caller in it.
jobctl_setup() {
	export DIR=$(mktemp -d "${TMPDIR:-/tmp}/jobctl-bats.XXXXXX")
	export HOME=$DIR/home XDG_RUNTIME_DIR=$DIR/run XDG_STATE_HOME=$DIR/state
	export PATH=$(cd "$top_builddir" && pwd):$PATH TZ=UTC LC_ALL=C.UTF-8
	unset JOBSCHED_SOCKET NO_COLOR POSIXLY_CORRECT XDG_CONFIG_HOME
	mkdir -p "$HOME" "$XDG_RUNTIME_DIR" "$XDG_STATE_HOME"
	chmod 700 "$XDG_RUNTIME_DIR"
	cd "$HOME" || return 1
}

daemon_start() {
	jobctl_setup && engine_start
}

# The number of the engine's process is in $DIR/pid, which a test that replaces it keeps true.
engine_start() {
	local i

	jobschedd --user </dev/null >>"$DIR/log" 2>&1 3>&- &
	echo $! >"$DIR/pid"
	disown
	for i in $(seq 200); do
		if jobctl --user status >/dev/null 2>&1; then
			return 0
		fi
		sleep 0.05
	done
	cat "$DIR/log" >&2
	return 1
}

end_process() {
	kill "$1" 2>/dev/null || true
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.02
	done
}

# Ends the engine, then the spawner it started (the one whose directory is ours): an engine would start another.
daemon_stop() {
	local pid

	end_process "$(cat "$DIR/pid")"
	for pid in $(pgrep -f -- "$DIR/run"); do
		end_process "$pid"
	done
	cd / || return 1
	rm -rf "$DIR"
}

# on_terminal COLUMNS COMMAND: what a person sees, without the carriage returns of the terminal
on_terminal() {
	local columns=$1
	shift
	TERM=xterm script -qec "stty cols $columns -echo; $*" /dev/null </dev/null | tr -d '\r'
}

# field JOB MEMBER: from the JSON of 'show'
field() {
	jobctl show --json "$1" | jq -r ".$2"
}

setup_file() {
	daemon_start
}

teardown_file() {
	daemon_stop
}
