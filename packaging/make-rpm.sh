#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the rpm packages from the distribution tarball and prints their paths. 'make rpm' calls this script.
# usage: packaging/make-rpm.sh BUILD_DIRECTORY TARBALL
#
# The unit tests of %check run only with RPM_CHECK=1. On Debian the packages that BuildRequires names do not exist, so rpm
# does not check them. RPM_RELEASE=N is the release of the packages instead of 1. Two builds of one tarball give identical packages.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
tarball=$build/$2
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES
umask 022

"$source/packaging/install-missing.sh" rpm >&2

top=$build/rpm
rm -rf "$top"
mkdir -p "$top/SOURCES" "$top/SPECS"
cp "$tarball" "$top/SOURCES"
cp "$source/packaging/rpm/jobsched.spec" "$top/SPECS"
nodeps= nocheck=--nocheck debian=
[ -z "${RPM_CHECK:-}" ] || nocheck=
# Debian's rpm neither strips programs nor compresses manual pages, and its compiler flags let the build directory appear in
# the build IDs.
if [ -f /etc/debian_version ]; then
	nodeps=--nodeps
	cat >"$top/macros" <<-END
		%optflags -O2 -g
		%__os_install_post %{_topdir}/install_post %{buildroot}
	END
	cat >"$top/install_post" <<-'END'
		#!/bin/sh -e
		cd "$1/usr"
		find bin sbin libexec -type f -exec strip {} +
		find share/man -type f -exec gzip -9n {} +
		find share/man -type l | while read -r link; do
			ln -s "$(readlink "$link").gz" "$link.gz"
			rm "$link"
		done
	END
	chmod +x "$top/install_post"
	# not in %optflags, which are recorded in the package
	export CFLAGS="-O2 -g -ffile-prefix-map=$top/BUILD=/usr/src"
	debian="--load=$top/macros"
fi
SOURCE_DATE_EPOCH=$(date -ud "$(sed -n 's/^\* \([A-Z].. [A-Z].. [0-9]* [0-9]*\) .*/\1/p' "$top/SPECS/jobsched.spec" | head -n 1)" +%s)
export SOURCE_DATE_EPOCH
rpmbuild -bb $nodeps $nocheck $debian --define "_topdir $top" ${RPM_RELEASE:+--define "jobsched_release $RPM_RELEASE"} --define 'debug_package %{nil}' \
	--define '_buildhost reproducible' --define 'use_source_date_epoch_as_buildtime 1' \
	--define 'clamp_mtime_to_source_date_epoch 1' "$top/SPECS/jobsched.spec" >"$build/rpm.log" 2>&1 ||
	{ tail -n 20 "$build/rpm.log" >&2; echo "make-rpm: rpmbuild failed; the complete log is '$build/rpm.log'" >&2; exit 1; }
find "$top/RPMS" -name '*.rpm' | while read -r package; do
	mv "$package" "$build"
	echo "$build/${package##*/}"
done
rm -rf "$top"
