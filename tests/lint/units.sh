# SPDX-License-Identifier: Apache-2.0
# Has systemd judge our units: whether it understands them, and how much they expose.
. "$(dirname "$0")/../tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for unit in jobsched-net.service jobsched-spawner.service jobschedd-user.service jobschedd.service jobschedd.socket; do
	# the programs of this build are not installed, and whether they exist is not the question
	sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$top_builddir/systemd/$unit" >"$work/$unit"
done

# a drop-in is read after its unit
cat "$work/jobschedd.service" "$top_srcdir/systemd/network.conf" >"$work/jobschedd-network.service"

understood() {
	(cd "$work" && SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no ./*.service ./*.socket 2>&1) |
		grep -E '(^|/)job[a-z-]*\.(service|socket)'
}
exposed() {
	systemd-analyze security --offline=true --no-pager --threshold="$2" "$work/$1" >"$work/out" 2>&1 ||
		tail -n 1 "$work/out"
}
unfinished_paths() {
	grep -n '@[a-z]*@' "$work"/* "$top_builddir/systemd/jobsched.tmpfiles"
}
# Every job would get a mount namespace or a list of devices from these, and its mounts would not be seen outside.
noticed_by_jobs() {
	grep -nE '^(Private|Protect|ReadOnly|ReadWrite|Inaccessible|Bind|Device|MountFlags|NoNewPrivileges|RestrictNamespaces)' \
		"$work/jobsched-spawner.service"
}

# The daemon restarts without loss, so the kernel may end it before other services.
favoured() {
	grep -n '^OOMScoreAdjust=-' "$work/jobschedd.service"
	grep -q '^MemoryMax=[0-9]' "$work/jobschedd.service" || echo "jobschedd.service has no MemoryMax="
}

lint "every place in the units was filled in" unfinished_paths
lint "the spawner's unit has nothing that an honest job would notice" noticed_by_jobs
lint "the daemon's memory is bounded and its OOM score is not lowered" favoured
if command -v systemd-analyze >/dev/null; then
	lint "systemd understands the units" understood
	lint "the engine's exposure is at most 0.6" exposed jobschedd.service 6
	lint "with network it is at most 1.5" exposed jobschedd-network.service 15
	lint "the exposure of jobsched-net is at most 1.5" exposed jobsched-net.service 15
	lint "the spawner's exposure is at most 8.4" exposed jobsched-spawner.service 84
else
	skipped "systemd understands the units" "no systemd-analyze"
fi
finish
