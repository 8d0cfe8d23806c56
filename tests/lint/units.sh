# SPDX-License-Identifier: Apache-2.0
# Has systemd judge our units: whether it understands them, and how much they expose.
. "$(dirname "$0")/../tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for unit in jobsched-spawner.service jobschedd-user.service jobschedd.service jobschedd.socket; do
	# the programs of this build are not installed, and whether they exist is not the question
	sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$top_builddir/systemd/$unit" >"$work/$unit"
done

understood() {
	(cd "$work" && SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no ./*.service ./*.socket 2>&1) |
		grep -E '(^|/)job[a-z-]*\.(service|socket)'
}
exposed() {
	systemd-analyze security --offline=true --no-pager --threshold="$2" "$work/$1" >"$work/out" 2>&1 ||
		tail -n 1 "$work/out"
}
unfinished_paths() {
	grep -n '@[a-z]*@' "$work"/*
}

lint "every place in the units was filled in" unfinished_paths
if command -v systemd-analyze >/dev/null; then
	lint "systemd understands the units" understood
	lint "the engine's exposure is at most 0.6" exposed jobschedd.service 6
	lint "the spawner's exposure is at most 8.4" exposed jobsched-spawner.service 84
else
	skipped "systemd understands the units" "no systemd-analyze"
fi
finish
