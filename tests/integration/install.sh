# SPDX-License-Identifier: Apache-2.0
# Installs into a temporary directory, checks the installed files and uninstalls them.
. "$(dirname "$0")/../tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MAKELEVEL

# Prints the expected files that are missing, for any prefix.
installed() {
	make -C "$top_builddir" install DESTDIR="$work/root" >"$work/log" 2>&1 || { tail "$work/log"; return; }
	(cd "$work/root" && find . -type f | sort) >"$work/files"
	for name in bin/jobctl sbin/jobschedd libexec/jobsched/jobsched-spawner libexec/jobsched/jobsched-init libexec/jobsched/jobsched-net \
		lib/systemd/system/jobschedd.service lib/systemd/system/jobschedd.socket lib/systemd/system/jobschedd-tcp.socket \
		lib/systemd/system/jobsched-spawner.service lib/systemd/system/jobsched-net.service lib/systemd/user/jobschedd.service lib/sysusers.d/jobsched.conf \
		lib/tmpfiles.d/jobsched.conf doc/jobsched/alerts.yml doc/jobsched/dashboard.json doc/jobsched/network.conf \
		man/man1/jobctl.1 man/man5/jobschedd.conf.5 man/man8/jobschedd.8 man/man8/jobsched-spawner.8 man/man8/jobsched-net.8 \
		man/man5/spawner.conf.5 man/man7/jobsched-cluster.7 man/man7/jobsched-command.7 man/man7/jobsched-executors.7 man/man7/jobsched-metrics.7 man/man7/jobsched-policies.7 \
		man/man7/jobsched-sandbox.7 man/man7/jobsched-time.7; do
		grep -q "/$name\$" "$work/files" || echo "$name is missing"
	done
	grep -E '\.(a|h|o)$|/test|/bench' "$work/files" | sed 's/$/ should not be installed/'
}
uninstalled() {
	make -C "$top_builddir" uninstall DESTDIR="$work/root" >"$work/log" 2>&1 || tail "$work/log"
	find "$work/root" -type f
}
lint "make install installs every file" installed
lint "make uninstall removes every file" uninstalled
finish
