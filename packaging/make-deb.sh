#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package from a build directory and prints its path. 'make deb' calls this script.
# usage: packaging/make-deb.sh BUILD_DIRECTORY [VERSION]
#
# If the build has other paths than a distribution uses, or sanitizers, a new build is made in BUILD_DIRECTORY/deb.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
out=$build
unset MAKEFLAGS MAKELEVEL
umask 022

# makefile_variable DIRECTORY NAME: prints a variable of the Makefile in DIRECTORY
makefile_variable() {
	make -s -C "$1" print-list LIST="$2"
}

distribution_paths() {
	paths=
	for name in prefix sysconfdir localstatedir runstatedir; do
		paths="$paths $(makefile_variable "$1" "$name")"
	done
	[ "$paths" = " /usr /etc /var /run" ] && ! makefile_variable "$1" HARDEN_LDFLAGS | grep -q sanitize
}

log=$(mktemp)
stage=$(mktemp -d)
chmod 755 "$stage"
trap 'rm -rf "$stage" "$log"' EXIT
quietly() {
	"$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; echo "make-deb: '$1' failed" >&2; exit 1; }
}

if ! distribution_paths "$build"; then
	out=$build/deb
	mkdir -p "$out"
	[ -f "$out/Makefile" ] || (cd "$out" && quietly "$source/configure" -q CC="$(makefile_variable "$build" CC)" \
		--prefix=/usr --sysconfdir=/etc --localstatedir=/var --runstatedir=/run)
fi
quietly make -C "$out" -j"$(nproc)"
version=${2:-$(makefile_variable "$out" PACKAGE_VERSION)-1}
quietly make -C "$out" install DESTDIR="$stage"

doc=$stage/usr/share/doc/jobsched
install -d "$doc" "$stage/etc/jobsched" "$stage/DEBIAN"
install -m 644 "$source/README" "$source/CHANGES" "$doc"
cat >"$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: jobsched

Files: *
Copyright: the authors of jobsched
License: Apache-2.0
 The text of the licence is in /usr/share/common-licenses/Apache-2.0.
END
printf 'jobsched (%s) unstable; urgency=medium\n\n  * Built from the source tree; see CHANGES.\n\n -- %s  %s\n' \
	"$version" 'the authors of jobsched <jobsched@localhost>' "$(date -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")" |
	gzip -9n >"$doc/changelog.Debian.gz"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +
programs=$(find "$stage/usr/bin" "$stage/usr/sbin" "$stage/usr/libexec" -type f)
for program in $programs; do
	strip --strip-unneeded --remove-section=.comment "$program"
done

# Determine the library dependencies. dpkg-shlibdeps expects a source package.
mkdir "$stage/debian"
printf 'Source: jobsched\n\nPackage: jobsched\nArchitecture: any\n' >"$stage/debian/control"
libraries=$(cd "$stage" && dpkg-shlibdeps --ignore-missing-info -O $programs 2>"$log" | sed -n 's/^shlibs:Depends=//p') ||
	{ cat "$log" >&2; exit 1; }
[ -n "$libraries" ] || { cat "$log" >&2; echo "make-deb: dpkg-shlibdeps found no library" >&2; exit 1; }
rm -r "$stage/debian"

sed -e "s|@version@|$version|" -e "s|@architecture@|$(dpkg --print-architecture)|" -e "s|@libraries@|$libraries|" \
	-e "s|@size@|$(du -sk --exclude=DEBIAN "$stage" | cut -f1)|" "$source/packaging/deb/control.in" |
	grep -v '^#' >"$stage/DEBIAN/control"
for script in postinst prerm postrm; do
	install -m 755 "$source/packaging/deb/$script" "$stage/DEBIAN"
done
(cd "$stage" && find etc -type f -printf '/%p\n' | sort >DEBIAN/conffiles)
(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
package=$build/jobsched_${version}_$(dpkg --print-architecture).deb
quietly dpkg-deb --build --root-owner-group "$stage" "$package"
echo "$package"
