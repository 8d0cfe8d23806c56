# SPDX-License-Identifier: Apache-2.0
# Checks the libraries that each program is linked with, and the code that it must not contain.
. "$(dirname "$0")/../tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# libraries PROGRAM PATTERN: prints the libraries of the program that match the pattern
libraries() {
	if [ ! -x "$top_builddir/$1" ]; then
		echo "$top_builddir/$1 is not built"
		return
	fi
	readelf -d "$top_builddir/$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | grep -E "$2"
}
lint "the spawner is linked with no parser, database or network library" \
	libraries jobsched-spawner '^lib(sqlite3|pq|jansson|microhttpd|systemd|curl|argtable|inih|ssl|crypto)'
lint "the daemon is not linked with libcurl or libarchive" \
	libraries jobschedd '^lib(curl|archive)'
lint "jobctl is linked with no database and no server" libraries jobctl '^lib(sqlite3|pq|microhttpd|systemd|inih|curl)'

only_libc() {
	libraries jobsched-spawner . | grep -vE '^(lib(c|m|seccomp|gcc_s|asan|tsan|ubsan|pthread)\.so|ld-linux)'
}
lint "the spawner is linked with the C library and libseccomp only" only_libc

only_libc_tables() {
	libraries jobsched-crontab . | grep -vE '^(lib(c|m|gcc_s|asan|tsan|ubsan|pthread)\.so|ld-linux)'
}
lint "jobsched-crontab is linked with the C library only" only_libc_tables

# Packages of Debian 12 are named after the library and its version: libpq.so.5 is in libpq5, libsqlite3.so.0 in libsqlite3-0.
image_libraries() {
	file=$top_srcdir/packaging/Containerfile
	sed -n '/^FROM/h; /^FROM/!H; ${x;p}' "$file" | tr ' \t\\' '\n' | grep -E '^(lib|zlib)' | sort -u >"$work/image"
	libraries jobschedd . | grep -vE '^(lib(c|m|gcc_s|asan|tsan|ubsan|pthread)\.so|ld-linux)' |
		sed -E 's/^libz\.so\.1$/zlib1g/; s/^(.*[0-9])\.so\.(.*)$/\1-\2/; s/^(.*)\.so\.(.*)$/\1\2/' | sort -u >"$work/linked"
	comm -3 "$work/image" "$work/linked" | sed -E 's/^\t(.*)/jobschedd needs \1, which the image does not have/; t
		s/$/ is in the image, and jobschedd does not need it/'
}
lint "the image of the Containerfile has the libraries of jobschedd" image_libraries

# private_exec PROGRAM...: functions and objects of libexec.a that are in a program
private_exec() {
	nm -g --defined-only "$top_builddir/libexec.a" 2>/dev/null | awk '$2 ~ /[TDBR]/ { print $3 }' | sort -u >"$work/exec"
	[ -s "$work/exec" ] || { echo "$top_builddir/libexec.a has no symbols"; return; }
	for program; do
		readelf -Ws "$top_builddir/$program" | awk '$7 != "UND" { print $8 }' | sort -u |
			comm -12 "$work/exec" - | sed "s|^|$program: |"
	done
}
spawner_parts_found() {
	private_exec jobsched-spawner | grep -q 'spawner_run$' || echo "spawner_run is not found in jobsched-spawner"
}
lint "the daemon and jobctl contain only src/exec/proto of src/exec" private_exec jobschedd jobctl
lint "the check for src/exec finds the spawner's functions" spawner_parts_found

hardening() {
	for program in at crontab jobctl jobsched-crontab jobsched-net jobsched-spawner jobschedd; do
		file=$top_builddir/$program
		[ -x "$file" ] || continue
		readelf -h "$file" | grep -q 'Type: *DYN' || echo "$program: not position independent"
		readelf -d "$file" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' || echo "$program: not bound at start"
		readelf -lW "$file" | grep -q GNU_RELRO || echo "$program: no read-only relocations"
		readelf -lW "$file" | grep GNU_STACK | grep -q RWE && echo "$program: executable stack"
	done
}
# failpoint_traces: prints the symbols and names of failpoints in the programs, one line per program and kind
failpoint_traces() {
	for program in at crontab jobctl jobsched-at-run jobsched-crontab jobsched-init jobsched-net jobsched-spawner jobschedd; do
		file=$top_builddir/$program
		[ -x "$file" ] || { echo "$program is not built"; continue; }
		readelf -Ws "$file" | grep -q failpoint && echo "$program: a symbol of failpoints"
		grep -aq -e JOBSCHED_FAILPOINTS -e 'grant\.pre_commit' "$file" && echo "$program: names of failpoints"
	done
}
failpoints_found() {
	[ "$(failpoint_traces | grep -cE '^jobsched(d|-spawner): ')" = 4 ] || failpoint_traces
}
if grep -q '^#define JOBSCHED_FAILPOINTS 1' "$top_builddir/config.h" 2>/dev/null; then
	lint "the check for failpoints finds them in a build with failpoints" failpoints_found
else
	lint "the programs have no failpoints" failpoint_traces
fi

# Builds with sanitizers are not hardened.
if ! readelf -d "$top_builddir/jobschedd" 2>/dev/null | grep -qE 'lib(asan|tsan)'; then
	lint "the programs are hardened" hardening
fi
finish
