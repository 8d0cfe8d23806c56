# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the command line: a daemon of the test, in directories of the test.
# 'load daemon' at the top of a file starts one; a file can define another setup_file after that.
bats_require_minimum_version 1.5.0

: "${top_builddir:=$BATS_TEST_DIRNAME/../../build}"

# Puts the programs of the build into PATH and clears the environment of the caller.
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

# The pid of the daemon is in $DIR/pid. A test that restarts the daemon updates it.
# The default of max-running depends on the load of the machine.
engine_start() {
	if [ ! -e "$HOME/.config/jobsched/jobschedd.conf" ]; then
		mkdir -p "$HOME/.config/jobsched"
		echo 'max-running = 64' >"$HOME/.config/jobsched/jobschedd.conf"
	fi
	jobschedd --user </dev/null >>"$DIR/log" 2>&1 3>&- &
	echo $! >"$DIR/pid"
	disown
	eventually jobctl --user status >/dev/null 2>&1 && return
	cat "$DIR/log" >&2
	return 1
}

# eventually COMMAND: repeats the command until it succeeds, for at most two minutes
eventually() {
	local end=$((SECONDS + 120))

	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# listed COUNT WORD...: 'jobctl runs WORD...' lists so many runs
listed() {
	[ "$(jobctl runs "${@:2}" --json | jq length)" = "$1" ]
}

# has_socket PID: the process has opened a socket
has_socket() {
	ls -l "/proc/$1/fd" | grep -q socket
}

end_process() {
	kill "$1" 2>/dev/null || true
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.02
	done
}

# Ends the daemon first, because it would start another spawner, then the spawner of this directory.
daemon_stop() {
	local pid

	end_process "$(cat "$DIR/pid")"
	for pid in $(pgrep -f -- "$DIR/run"); do
		end_process "$pid"
	done
	cd / || return 1
	rm -rf "$DIR"
}

# on_terminal COLUMNS COMMAND: the output on a terminal, without carriage returns
on_terminal() {
	local columns=$1
	shift
	TERM=xterm script -qec "stty cols $columns -echo; $*" /dev/null </dev/null | tr -d '\r'
}

# field JOB MEMBER: a member of 'show --json'
field() {
	jobctl show --json "$1" | jq -r ".$2"
}

setup_file() {
	daemon_start
}

teardown_file() {
	daemon_stop
}
