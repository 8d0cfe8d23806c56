# SPDX-License-Identifier: Apache-2.0
# Keeps the dependency rule between directories: base <- core <- {store, wire, exec, net} <- daemon <- cmd.
. "$(dirname "$0")/../tap.sh"

# what each directory may include, then the headers of others' libraries it may use
cat >"${TMPDIR:-/tmp}/layers.$$" <<'RULES'
src/base base | systemd/sd-journal.h
src/core base core |
src/store base core store | sqlite3.h libpq-fe.h
src/wire base core wire | jansson.h
src/exec base core exec | systemd/ seccomp.h
src/net base core net | systemd/ curl/curl.h archive.h archive_entry.h seccomp.h
src/daemon base core store wire exec net daemon | systemd/ microhttpd.h jansson.h ini.h
cmd/jobctl base core wire exec | jansson.h argtable2.h argtable3.h
cmd/jobsched-init |
cmd/jobsched-net base core net | systemd/
cmd/jobsched-spawner base core exec |
cmd/jobschedd base core store wire exec daemon | systemd/
RULES
trap 'rm -f "${TMPDIR:-/tmp}/layers.$$"' EXIT

cd "$top_srcdir" || exit 1
own() {
	c_sources src cmd | xargs awk -v want="$1" '
	FNR == NR {
		split($0, half, "|")
		n = split(half[1], word, " ")
		for (i = 2; i <= n; i++)
			dir_ok[word[1], word[i]] = 1
		known[word[1]] = 1
		libs[word[1]] = half[2]
		next
	}
	FNR == 1 {
		split(FILENAME, part, "/")
		home = part[1] "/" part[2]
		if (!(home in known) && want == "own")
			print FILENAME ": no rule for directory " home
	}
	want == "own" && /^[ \t]*#[ \t]*include[ \t]*"/ {
		name = $0
		sub(/^[^"]*"/, "", name)
		sub(/".*/, "", name)
		if (name ~ /\.\./)
			print FILENAME ":" FNR ": written relative to the file: " name
		else if (name ~ /\//) {
			split(name, part, "/")
			if (!((home, part[1]) in dir_ok) && !(home == "cmd/" part[1]))
				print FILENAME ":" FNR ": " home " may not include " name
		} else if (home !~ /^cmd/ && name != "config.h")
			print FILENAME ":" FNR ": not written from src/: " name
	}
	want == "libs" && /^[ \t]*#[ \t]*include[ \t]*</ {
		name = $0
		sub(/^[^<]*</, "", name)
		sub(/>.*/, "", name)
		if (name !~ /^(sqlite3|libpq|postgres|jansson|microhttpd|seccomp|systemd\/|argtable|ini\.h|curl\/|archive)/)
			next
		n = split(libs[home], may, " ")
		for (i = 1; i <= n; i++)
			if (index(name, may[i]) == 1)
				next
		print FILENAME ":" FNR ": " home " may not use " name
	}' "${TMPDIR:-/tmp}/layers.$$"
}
lint "directories include only those below them" own own
lint "each library is used in its own directory only" own libs

# decisions take time and data as arguments
impure() {
	c_sources src/core | xargs -r grep -nE \
		'(^|[^a-z_>.-])(time|clock_gettime|gettimeofday|localtime|localtime_r|mktime|socket|fork|system|getenv|clock_now)\('
}
lint "src/core asks no clock, environment or kernel" impure
finish
