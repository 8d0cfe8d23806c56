#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the tree for arm64 with Debian's cross compiler in a new root file system and runs unit tests with qemu-user.
# Needs root and several minutes; not part of 'make check'.
#
# usage: tests/packages/arm64.sh
# The last line is "N passed, N failed" (test programs). Exit status 77: the root file system could not be made.
set -u
unset CC CFLAGS CPPFLAGS LDFLAGS CONFIG_SITE # of this machine; they do not apply in the root file system
top=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d "${TMPDIR:-/tmp}/jobsched-arm64.XXXXXX") || exit 77
trap 'rm -rf "$root"' EXIT

# The libraries of the build section are needed for arm64, the tools for this machine. libargtable2-dev depends on a package
# of documentation that cannot be installed for another architecture, so it is unpacked.
libraries=$(awk '/^\[/ { on = $0 == "[build]"; next } on && /^lib|^zlib/ { print $1 ":arm64" }' "$top/packaging/debian-packages" |
	sed 's/^libargtable2-dev/libargtable2-0/')
include=$(echo autoconf automake make pkg-config crossbuild-essential-arm64 qemu-user libcmocka-dev:arm64 tzdata $libraries | tr ' ' ',')
mmdebstrap --quiet --mode=root --variant=minbase --architectures=amd64,arm64 --include="$include" bookworm "$root/root" ||
	{ echo "arm64: mmdebstrap could not make a root file system" >&2; exit 77; }

cp -L /etc/resolv.conf "$root/root/etc/"
apt-config dump 2>/dev/null | grep -E '^Acquire::https?::Proxy' >"$root/root/etc/apt/apt.conf.d/90machine"
mkdir "$root/root/source"
git -C "$top" archive HEAD | tar -xf - -C "$root/root/source"
cat >"$root/root/build.sh" <<'END'
set -eu
(cd /tmp && apt-get -q update && apt-get -q download libargtable2-dev:arm64 && dpkg-deb -x libargtable2-dev_*.deb /) >/tmp/argtable.log 2>&1 ||
	{ cat /tmp/argtable.log; exit 1; }
cd /source
./autogen.sh >/tmp/autogen.log 2>&1
mkdir build
cd build
export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
../configure -q --host=aarch64-linux-gnu
make -s -j"$(nproc)"
programs=$(make -s print-list LIST=check_PROGRAMS | tr ' ' '\n' | grep -E '^tests/unit/(base|core|wire|jobctl|exec)/' |
	grep -v test_exec_artifact_mount) # qemu-user has no open_tree()
make -s -j"$(nproc)" $programs
passed=0 failed=0
for program in $programs; do
	if (export top_srcdir=.. srcdir=.. top_builddir=.; timeout 1800 qemu-aarch64 "./$program") >/tmp/log 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED $program"
		grep -vE '^ok' /tmp/log | head -n 20
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
END
unshare --mount --pid --fork --kill-child sh -c '
	mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" sh /build.sh
' sh "$root/root"
