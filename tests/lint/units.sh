# SPDX-License-Identifier: Apache-2.0
# Checks the systemd units with systemd-analyze: syntax and exposure.
. "$(dirname "$0")/../tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for unit in jobsched-crontab.service jobsched-crontab.socket jobsched-net.service jobsched-spawner.service jobschedd-user.service jobschedd.service jobschedd.socket; do
	# the programs are not installed, so a program that exists takes their place
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
# Jobs inherit these settings: they would run in a mount namespace, or with restricted devices or privileges.
settings_that_affect_jobs() {
	grep -nE '^(Private|Protect|ReadOnly|ReadWrite|Inaccessible|Bind|Device|MountFlags|NoNewPrivileges|RestrictNamespaces)' \
		"$work/jobsched-spawner.service"
}

# The daemon restarts without data loss, so it needs no protection from the OOM killer.
memory_settings() {
	grep -n '^OOMScoreAdjust=-' "$work/jobschedd.service"
	grep -q '^MemoryMax=[0-9]' "$work/jobschedd.service" || echo "jobschedd.service has no MemoryMax="
}

lint "all variables in the units are replaced" unfinished_paths
lint "the spawner's unit has no settings that affect jobs" settings_that_affect_jobs
lint "the daemon's memory is limited and its OOM score is not lowered" memory_settings
if command -v systemd-analyze >/dev/null; then
	lint "systemd accepts the units" understood
	lint "the exposure of jobschedd is at most 0.6" exposed jobschedd.service 6
	lint "the exposure of jobschedd with network.conf is at most 1.5" exposed jobschedd-network.service 15
	lint "the exposure of jobsched-crontab is at most 1.9" exposed jobsched-crontab.service 19
	lint "the exposure of jobsched-net is at most 1.5" exposed jobsched-net.service 15
	lint "the exposure of jobsched-spawner is at most 8.4" exposed jobsched-spawner.service 84
else
	skipped "systemd accepts the units" "no systemd-analyze"
fi
finish
