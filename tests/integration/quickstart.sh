# SPDX-License-Identifier: Apache-2.0
# Runs ./quickstart with an empty home directory and the existing build.
. "$(dirname "$0")/../tap.sh"

# The socket's path must be short, so not below a long $TMPDIR.
work=$(mktemp -d /tmp/jobsched-qs.XXXXXX)
top_srcdir=$(cd "$top_srcdir" && pwd)
mkdir "$work/tree" "$work/home"
for entry in "$top_srcdir"/* "$top_srcdir"/.ci; do
	case ${entry##*/} in
	build*) ;;
	quickstart) cp "$entry" "$work/tree/" ;;
	*) ln -s "$entry" "$work/tree/" ;;
	esac
done
[ -e "$work/tree/build-aux" ] || ln -s "$top_srcdir/build-aux" "$work/tree/"
ln -s "$(cd "$top_builddir" && pwd)" "$work/tree/build"
unset MAKEFLAGS MAKELEVEL XDG_STATE_HOME XDG_RUNTIME_DIR XDG_CONFIG_HOME JOBSCHED_SOCKET
export HOME="$work/home"

leave() {
	"$work/tree/quickstart" stop >/dev/null
	# the spawner would stay for a minute
	for dir in /proc/[0-9]*; do
		{ tr '\0' ' ' <"$dir/cmdline"; } 2>/dev/null | grep -q "jobsched-spawner.*$work" && kill "${dir#/proc/}"
	done
	rm -rf "$work"
}
trap leave EXIT

first() {
	"$work/tree/quickstart" >"$work/out" 2>&1 </dev/null || { echo "quickstart failed"; cat "$work/out"; return; }
	for n in 1 2 3; do
		grep -q "^hello $n from run" "$work/out" || echo "no output of the job: hello $n"
	done
	grep -q succeeded "$work/out" || echo "no history"
	grep -q 'quickstart stop' "$work/out" || echo "the output does not name the stop command"
	[ -f "$work/home/.local/state/jobsched/jobs.db" ] || echo "no store in the caller's state directory"
}
again() {
	"$work/tree/quickstart" >"$work/out" 2>&1 </dev/null || { echo "quickstart failed"; cat "$work/out"; return; }
	! grep -q configuring "$work/out" || echo "quickstart configured the build again"
	grep -q 'already running' "$work/out" || echo "quickstart started a second daemon"
	grep -cE '^[0-9]+#[0-9]+ +succeeded' "$work/out" | grep -qx 2 || echo "the first job is not in the history any more"
}
stopped() {
	"$work/tree/quickstart" stop >"$work/out" || echo "quickstart failed"
	"$top_builddir/jobctl" --user status >/dev/null 2>&1
	[ $? -eq 5 ] || echo "the daemon still answers"
	"$work/tree/quickstart" stop | grep -q none || echo "a second stop does not report 'none'"
}
# A machine without the packages and without sudo, used by an ordinary user.
no_sudo() {
	mkdir -p "$work/bin"
	for tool in sh awk dirname; do
		ln -sf "$(command -v $tool)" "$work/bin/$tool"
	done
	printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
	printf '#!/bin/sh\nexit 1\n' >"$work/bin/dpkg-query"
	printf '#!/bin/sh\necho apt-get was called\n' >"$work/bin/apt-get"
	chmod +x "$work/bin/id" "$work/bin/dpkg-query" "$work/bin/apt-get"
	PATH=$work/bin "$top_srcdir/packaging/install-missing.sh" build >"$work/out" 2>&1 && echo "install-missing.sh succeeded"
	! grep 'apt-get was called' "$work/out" || echo "install-missing.sh installed packages"
	grep -q '^  apt-get update && apt-get install .* dpkg-dev .*gcc' "$work/out" || { echo "the printed command is incomplete:"; cat "$work/out"; }
}
lint "install-missing.sh without sudo prints the command that installs the packages" no_sudo
lint "quickstart starts a scheduler, runs a job and shows its history" first
lint "a second quickstart uses the running scheduler and the existing build" again
elsewhere() {
	mkdir -m 700 -p "$work/run"
	XDG_RUNTIME_DIR=$work/run "$work/tree/quickstart" >"$work/out" 2>&1 </dev/null || { echo "quickstart failed"; cat "$work/out"; return; }
	grep -q 'already running' "$work/out" || echo "quickstart started a second daemon"
	XDG_RUNTIME_DIR=$work/run "$top_builddir/jobctl" --user status >/dev/null || echo "jobctl does not find the daemon"
}
lint "quickstart with another XDG_RUNTIME_DIR finds the running scheduler" elsewhere
lint "quickstart stop ends the scheduler" stopped

# The place of the sockets and, for root, of the database.
cluster_place() {
	cat "$work/home/.local/state/jobsched/cluster/place"
}
cluster() {
	"$work/tree/quickstart" cluster >"$work/out" 2>&1 </dev/null || { echo "quickstart cluster failed"; cat "$work/out"; return; }
	first=$(sed -n 's/^attempt 1 runs on //p' "$work/out") second=$(sed -n 's/^attempt 2 runs on //p' "$work/out")
	case $first,$second in
	n[123],n[123]) [ "$first" != "$second" ] || echo "both attempts ran on $first" ;;
	*) echo "the output does not show two attempts:"; cat "$work/out" ;;
	esac
	grep -qx finished "$work/out" || echo "the second attempt did not finish"
	grep -qE "^$first +lost" "$work/out" || echo "the killed node $first is not listed as lost"
	sed -n '/^--- Step 5/,$p' "$work/out" | grep -cE '^n[123] +alive' | grep -qx 3 || echo "the killed node is not back"
}
cluster_stopped() {
	place=$(cluster_place)
	[ -S "$place/.s.PGSQL.5432" ] || echo "PostgreSQL has no socket in '$place'"
	"$work/tree/quickstart" stop >"$work/out" 2>&1 || echo "quickstart stop failed"
	grep -q '^cluster .*ended' "$work/out" || { echo "quickstart stop does not mention the cluster"; cat "$work/out"; }
	[ ! -e "$place" ] && [ ! -e "$work/home/.local/state/jobsched/cluster" ] || echo "files are left"
	grep -lsaF "$place/" /proc/[0-9]*/cmdline | cut -d / -f 3 | while read -r pid; do
		{ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -E '^[^ ]*(jobsched|postgres)' && echo "process $pid is left"
	done
}
lint "quickstart cluster runs the job of a killed node on another node" cluster
lint "quickstart stop ends the cluster and deletes its files" cluster_stopped
finish
