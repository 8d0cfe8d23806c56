# SPDX-License-Identifier: Apache-2.0
# Checks that the distribution tarball contains every file of the git repository.
. "$(dirname "$0")/../tap.sh"

forgotten() {
	work=$(mktemp -d)
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$top_builddir" print-list LIST=DISTFILES | tr ' ' '\n' | sed "s|^\./||" | sort -u >"$work/dist"
	git -C "$top_srcdir" ls-files | grep -vxE "Makefile.am|configure.ac" | sort -u | awk '
	FNR == NR { dist[$0] = 1; next }
	{
		# a directory in the list includes all its files
		name = $0
		while (!(name in dist) && sub(/\/[^\/]*$/, "", name))
			;
		if (!(name in dist))
			print $0 ": not in EXTRA_DIST or any list of sources"
	}' "$work/dist" -
	rm -rf "$work"
}

if git -C "$top_srcdir" rev-parse --show-toplevel 2>/dev/null | grep -qxF "$(cd "$top_srcdir" && pwd -P)"; then
	lint "every file in git is in the tarball" forgotten
else
	skipped "every file in git is in the tarball" "not a git checkout"
fi
finish
