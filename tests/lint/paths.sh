# SPDX-License-Identifier: Apache-2.0
# Finds paths of the build machine in the sources and in the programs.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
here=$PWD
in_sources() {
	sources '*' | grep -v '^tests/lint/' | xargs grep -nIE '(^|[^A-Za-z0-9_.])/(work|root|Users|home/[a-z])[/a-z]'
}
lint "no source names a directory of the build machine" in_sources

# The debugging information may contain the build directory, other sections may not.
in_programs() {
	for program in at crontab jobctl jobsched-crontab jobsched-net jobsched-spawner jobschedd; do
		[ ! -x "$top_builddir/$program" ] ||
			strings -d "$top_builddir/$program" | grep -F "$here" | sed "s/^/$program: /"
	done
}
# Sanitizers store file names for their reports.
if ! readelf -d "$top_builddir/jobschedd" 2>/dev/null | grep -qE 'lib(asan|tsan)'; then
	lint "no program contains the path of its sources" in_programs
fi
finish
