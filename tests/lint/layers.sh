# SPDX-License-Identifier: Apache-2.0
# Checks which directories of src and cmd a file may include, and which outside libraries it may use:
# base <- core <- {store, wire, exec, net} <- daemon <- cmd, and the order of the directories inside these.
. "$(dirname "$0")/../tap.sh"

# DIRECTORY INCLUDES... | LIBRARY-HEADERS...   An entry of INCLUDES is a directory below src or cmd, without its subdirectories.
# Each directory has a line here and a line in section 1 of HACKING.
cat >"${TMPDIR:-/tmp}/layers.$$" <<'RULES'
src/base | systemd/sd-journal.h
src/base/file base |
src/core/time base |
src/core/target base |
src/core/job base core/time core/target |
src/core/start base core/job |
src/core/decide base core/time core/job |
src/core/crontab base core/time core/job |
src/store base core/time core/job store/backend |
src/store/backend base base/file | sqlite3.h libpq-fe.h
src/store/ops base core/time core/job core/decide store store/backend store/read store/read/list store/ops/job store/ops/node store/ops/run |
src/store/ops/job base core/time core/job core/decide store store/backend store/ops store/ops/run store/read store/read/list |
src/store/ops/node base core/time core/job core/decide store store/backend store/ops store/ops/run store/read store/read/list |
src/store/ops/run base core/time core/job core/decide store store/backend store/ops store/ops/job store/ops/node |
src/store/read base core/time core/job core/decide store store/backend store/read/list |
src/store/read/list base core/time core/job core/decide store store/backend |
src/wire base core/time core/job | jansson.h gnutls/
src/exec/proto base core/job core/start | systemd/sd-event.h
src/exec/child base core/job core/start | seccomp.h
src/exec/worker exec/worker/output base core/job core/start exec/proto exec/child | security/pam_appl.h
src/exec/worker/output base exec/child exec/proto |
src/exec/spawner base base/file core/crontab core/job core/start exec/proto exec/child exec/worker exec/worker/output |
src/net base base/file core/job core/target net/artifact net/aws net/call net/unpack | systemd/sd-event.h curl/curl.h
src/net/artifact base core/job net net/aws net/unpack | systemd/sd-event.h curl/curl.h
src/net/aws base core/job core/target net net/call | systemd/sd-event.h curl/curl.h
src/net/call base core/job core/target net net/aws net/kafka | systemd/sd-event.h curl/curl.h
src/net/kafka base core/job core/target net net/call | systemd/sd-event.h librdkafka/
src/net/unpack base | archive.h archive_entry.h seccomp.h
src/spool base base/file |
src/web |
src/daemon/metrics base core/job core/decide store store/ops store/read store/read/list |
src/daemon/loop base base/file core/time core/job core/target core/start core/decide store store/backend store/ops store/read net exec/proto daemon/metrics | systemd/ ini.h
src/daemon/trace base core/job net daemon/loop daemon/metrics | systemd/sd-event.h jansson.h
src/daemon/artifact base core/job core/target exec/proto daemon/loop | systemd/sd-event.h
src/daemon/schedule base core/time core/job core/target core/start core/crontab core/decide store store/ops store/ops/job store/ops/node store/ops/run store/read wire net exec/proto daemon/loop daemon/artifact daemon/metrics daemon/trace | systemd/sd-event.h
src/daemon/notify base core/job core/start store store/ops store/read wire exec/proto daemon/loop daemon/metrics | systemd/sd-event.h jansson.h
src/daemon/container base core/time core/crontab daemon/loop | systemd/sd-event.h microhttpd.h
src/daemon/crontab base core/time core/job core/crontab core/decide store store/ops store/ops/job store/read store/read/list wire exec/proto daemon/loop daemon/schedule |
src/daemon/archive base core/job core/target store store/read store/read/list wire exec/proto net daemon/loop daemon/metrics | systemd/sd-event.h zlib.h jansson.h
src/daemon/retention base core/job store store/ops store/read exec/proto daemon/loop daemon/archive | systemd/sd-event.h
src/daemon/cluster base base/file core/job store store/ops store/ops/node store/read store/read/list exec/proto daemon/loop | systemd/sd-event.h
src/daemon/api base base/file core/time core/job core/decide store store/ops store/read store/read/list wire daemon/loop daemon/api/auth daemon/api/submit daemon/metrics | systemd/ microhttpd.h jansson.h
src/daemon/api/auth base core/job store store/read store/read/list daemon/loop | systemd/sd-event.h jansson.h gnutls/ rhonabwy.h
src/daemon/api/stream base core/job store store/read/list daemon/api | systemd/sd-event.h
src/daemon/api/submit base core/time core/job core/target core/start core/decide store store/ops/job store/read wire daemon/loop | jansson.h
src/daemon/api/routes base core/time core/job core/start core/decide store store/ops store/ops/job store/ops/node store/ops/run store/read store/read/list wire exec/proto daemon/loop daemon/api daemon/api/stream daemon/api/auth daemon/api/submit daemon/archive daemon/cluster daemon/retention daemon/schedule daemon/crontab daemon/metrics web | systemd/sd-event.h
src/daemon base base/file core/decide core/job store store/backend store/ops store/ops/node store/ops/run store/read daemon/loop daemon/api daemon/api/auth daemon/api/submit daemon/archive daemon/artifact daemon/cluster daemon/notify daemon/retention daemon/schedule daemon/crontab daemon/metrics daemon/trace | systemd/
cmd/at base core/job core/time wire spool jobctl jobctl/spec at | jansson.h
cmd/crontab base core/crontab core/time spool crontab |
cmd/jobctl base base/file core/time core/job core/start wire exec/proto jobctl jobctl/complete jobctl/defs jobctl/doctor jobctl/render jobctl/spec jobctl/verbs | jansson.h argtable2.h argtable3.h
cmd/jobctl/complete base core/job wire jobctl jobctl/doctor jobctl/spec | jansson.h
cmd/jobctl/crontab base core/time core/job core/crontab jobctl jobctl/render jobctl/spec | jansson.h
cmd/jobctl/cron base jobctl | jansson.h
cmd/jobctl/defs base core/time core/crontab core/job wire jobctl jobctl/spec | jansson.h
cmd/jobctl/doctor base base/file core/time wire jobctl | jansson.h
cmd/jobctl/render base core/time core/job core/decide wire jobctl jobctl/spec | jansson.h
cmd/jobctl/spec base core/time core/job core/start core/decide wire jobctl | jansson.h
cmd/jobctl/top base core/job wire jobctl jobctl/render | jansson.h curses.h
cmd/jobctl/verbs base core/time core/job core/start core/crontab wire exec/proto jobctl jobctl/complete jobctl/crontab jobctl/defs jobctl/doctor jobctl/render jobctl/spec jobctl/top jobctl/cron | jansson.h
cmd/jobctl/verbs/system base base/file core/time core/job core/start core/crontab wire exec/proto jobctl jobctl/complete jobctl/crontab jobctl/defs jobctl/doctor jobctl/render jobctl/spec jobctl/top jobctl/cron jobctl/verbs | jansson.h
cmd/jobsched-at-run base |
cmd/jobsched-crontab base spool |
cmd/jobsched-init |
cmd/jobsched-net base net | systemd/
cmd/jobsched-spawner base core/job exec/proto exec/child exec/worker exec/spawner jobsched-spawner |
cmd/jobschedd base core/crontab store/backend daemon daemon/container daemon/loop | systemd/
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
		home = FILENAME
		sub(/\/[^\/]*$/, "", home)
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
			dir = name
			sub(/\/[^\/]*$/, "", dir)
			if (!((home, dir) in dir_ok) && home != "src/" dir && home != "cmd/" dir)
				print FILENAME ":" FNR ": " home " may not include " name
		} else if (name != "config.h")
			print FILENAME ":" FNR ": not written from src/ or cmd/: " name
	}
	want == "libs" && /^[ \t]*#[ \t]*include[ \t]*</ {
		name = $0
		sub(/^[^<]*</, "", name)
		sub(/>.*/, "", name)
		if (name !~ /^(sqlite3|libpq|postgres|jansson|microhttpd|seccomp|systemd\/|argtable|ini\.h|curl\/|archive|zlib|security\/|gnutls\/|rhonabwy|librdkafka)/)
			next
		n = split(libs[home], may, " ")
		for (i = 1; i <= n; i++)
			if (index(name, may[i]) == 1)
				next
		print FILENAME ":" FNR ": " home " may not use " name
	}' "${TMPDIR:-/tmp}/layers.$$"
}
lint "directories include only the allowed directories" own own
lint "each library is used only in the allowed directories" own libs

# The verbs of jobctl use the rest of it; only its main function knows the table of verbs.
verbs_users() {
	c_sources cmd/jobctl | grep -vE '^cmd/jobctl/(verbs/|main\.c$)' | xargs -r grep -Hn '#include "jobctl/verbs/'
}
lint "only main.c includes the verbs of jobctl" verbs_users

# decisions get time and data as arguments
impure() {
	c_sources src/core | xargs -r grep -nE \
		'(^|[^a-z_>.-])(time|clock_gettime|gettimeofday|localtime|localtime_r|mktime|socket|fork|system|getenv|clock_now)\('
}
lint "src/core uses no clock, environment or system call" impure
finish
