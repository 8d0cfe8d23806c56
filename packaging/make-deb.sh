#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages from a build directory and prints their paths. 'make deb' calls this script.
# usage: packaging/make-deb.sh BUILD_DIRECTORY [VERSION]
#
# If the build has other paths than a distribution uses, or sanitizers, a new build is made in BUILD_DIRECTORY/deb with the
# flags of dpkg-buildflags. Two builds of one source tree give identical packages.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
out=$build
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES
umask 022

"$source/packaging/install-missing.sh" deb >&2

# makefile_variable DIRECTORY NAME: prints a variable of the Makefile in DIRECTORY
makefile_variable() {
	make -s -C "$1" print-list LIST="$2"
}

distribution_paths() {
	paths=
	for name in prefix sysconfdir localstatedir runstatedir; do
		paths="$paths $(makefile_variable "$1" "$name")"
	done
	[ "$paths" = " /usr /etc /var /run" ] && makefile_variable "$1" bin_PROGRAMS | grep -q crontab && ! makefile_variable "$1" HARDEN_LDFLAGS | grep -q sanitize
}

log=$(mktemp)
stage=$(mktemp -d)
trap 'rm -rf "$stage" "$log"' EXIT
quietly() {
	"$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; echo "make-deb: '$1' failed" >&2; exit 1; }
}

if ! distribution_paths "$build"; then
	out=$build/deb
	mkdir -p "$out"
	# The names of the two directories do not appear in the programs.
	flags="$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get CFLAGS)"
	flags="$flags -ffile-prefix-map=$source=/usr/src/jobsched -ffile-prefix-map=$out=/usr/src/jobsched/build"
	[ -f "$out/Makefile" ] || (cd "$out" && quietly "$source/configure" -q CC="$(makefile_variable "$build" CC)" \
		CFLAGS="$flags" --prefix=/usr --sysconfdir=/etc --localstatedir=/var --runstatedir=/run --enable-cron-commands)
fi
quietly make -C "$out" -j"$(nproc)"

mkdir "$stage/source"
cp -R "$source/packaging/debian" "$stage/source/debian"
chmod -R u+w "$stage/source/debian"
cp "$source/README" "$source/CHANGES" "$stage/source"
cd "$stage/source"
version=${2:-$(makefile_variable "$out" PACKAGE_VERSION)-1}
sed -i "1s/([^)]*)/($version)/" debian/changelog
sed -i "s/@version@/$version/" debian/jobsched.preinst
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -S Timestamp)
export SOURCE_DATE_EPOCH DEB_BUILD_OPTIONS=noautodbgsym
quietly debian/rules binary BUILD="$out"
for package in ../*.deb; do
	mv "$package" "$build"
	echo "$build/${package#../}"
done
