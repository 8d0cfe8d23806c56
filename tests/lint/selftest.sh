# SPDX-License-Identifier: Apache-2.0
# Tests the lints: adds one violation at a time to a small tree and checks that the right lint reports it.
. "$(dirname "$0")/../tap.sh"

units=$(cd "$top_builddir/systemd" && pwd)
programs=$(cd "$top_builddir" && pwd)
lints=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

spdx='/* SPDX-License-Identifier: Apache-2.0 */'
fresh() {
	rm -rf "$work/tree" "$work/build"
	mkdir -p "$work/build/systemd"
	cd "$work" || exit 1
	for dir in src/base src/core/job src/store/ops src/wire src/exec/worker src/net src/daemon/schedule cmd/jobctl cmd/jobsched-net cmd/jobsched-spawner cmd/jobschedd man; do
		mkdir -p "tree/$dir"
		printf '%s\n/* A file without violations. */\n#include "base/err.h"\n\nint f(void)\n{\n\treturn 0;\n}\n' "$spdx" >"tree/$dir/a.c"
	done
	cat >tree/man/jobctl.1 <<-'PAGE'
	.\" SPDX-License-Identifier: Apache-2.0
	.Dd November 16, 2026
	.Dt JOBCTL 1
	.Os
	.Sh NAME
	.Nm jobctl
	.Nd test page
	.Sh DESCRIPTION
	.Bl -tag -width Ds
	.It Fl -help
	Help.
	.It Fl n , Fl -name Ar NAME
	Name.
	.El
	.Ss add
	Adds.
	PAGE
	for page in jobschedd jobsched-crontab jobsched-net jobsched-spawner; do
		sed -e "s/JOBCTL 1/$(echo $page | tr a-z A-Z) 8/" -e "s/jobctl/$page/" tree/man/jobctl.1 >"tree/man/$page.8"
	done
	cat >build/jobctl <<-'PROGRAM'
	#!/bin/sh
	printf 'usage: jobctl VERB\n  add   adds\n  --help  this\n  -n, --name NAME\n'
	PROGRAM
	cp build/jobctl build/jobsched-spawner
	cp build/jobctl build/jobsched-net
	cp build/jobctl build/jobsched-crontab
	cp build/jobctl build/jobschedd
	echo '[ "$2" != --print-config ] || printf "log-level = info\n;store = \n"' >>build/jobschedd
	sed -e 's/JOBCTL 1/JOBSCHEDD.CONF 5/' -e 's/jobctl/jobschedd.conf/' -e 's/^\.It Fl -help/.It Ic store/' \
		-e 's/^\.It Fl n.*/.It Ic log-level Pq reload/' tree/man/jobctl.1 >tree/man/jobschedd.conf.5
	chmod +x build/job*
	cp "$units"/*.service "$units"/*.socket "$units"/*.tmpfiles build/systemd/
	mkdir tree/systemd tree/packaging
	cp "$lints/../../packaging/Containerfile" tree/packaging/
	cp "$lints/../../systemd/network.conf" tree/systemd/
}
run() {
	(export top_srcdir="$work/tree" top_builddir="$work/build"; sh "$lints/$1.sh") >"$work/out" 2>&1
}

clean() {
	run "$1"
	grep '^not ok' "$work/out"
	grep -q '^ok' "$work/out" || cat "$work/out"
}
# caught LINT CASE: checks that this case, and no other, fails
caught() {
	run "$1"
	grep -qE "^not ok [0-9]+ - $2\$" "$work/out" || { echo "the case did not fail:"; cat "$work/out"; }
	[ "$(grep -c '^not ok' "$work/out")" -eq 1 ] || { echo "other cases failed, too:"; cat "$work/out"; }
}
# planted LINT CASE FILE TEXT [NAME]: appends TEXT to FILE and checks that the case fails
planted() {
	fresh
	printf '%b\n' "$4" >>"$work/tree/$3"
	lint "$1.sh finds: $(printf %s "${5:-$4}" | sed 's,\\t,,g; s,#,,g')" caught "$1" "$2"
}

fresh
for name in layers sql files sizes state paths manual units; do
	lint "$name.sh passes on a clean tree" clean "$name"
done

below="directories include only the allowed directories"
planted layers "$below" src/base/a.c '#include "core/job/job.h"'
planted layers "$below" src/core/job/a.c '#include "store/store.h"'
planted layers "$below" src/store/ops/a.c '#include "wire/spec_json.h"'
planted layers "$below" src/wire/a.c '#include "exec/proto/output_file.h"'
planted layers "$below" src/daemon/schedule/a.c '#include "exec/spawner/conn.h"'
planted layers "$below" src/exec/worker/a.c '#include "store/ops/op.h"'
planted layers "$below" src/daemon/schedule/a.c '#include "../cmd/jobctl/a.h"'
planted layers "$below" cmd/jobctl/a.c '#include "store/store.h"'
planted layers "$below" cmd/jobsched-spawner/a.c '#include "wire/spec_json.h"'
planted layers "$below" src/store/ops/a.c '#include "daemon/loop/config.h"'
planted layers "$below" src/daemon/schedule/a.c '#include "daemon/api/server.h"'
planted layers "$below" src/base/a.c '#include "err.h"'
library="each library is used only in the allowed directories"
planted layers "$library" src/core/job/a.c '#include <jansson.h>'
planted layers "$library" src/daemon/schedule/a.c '#include <sqlite3.h>'
planted layers "$library" cmd/jobsched-spawner/a.c '#include <systemd/sd-event.h>'
planted layers "only main.c includes the verbs of jobctl" cmd/jobctl/a.c '#include "jobctl/verbs/verbs.h"'
planted layers "src\/core uses no clock, environment or system call" src/core/job/a.c '\tt = time(NULL);'

query="no query is outside the .sql files"
planted sql "$query" src/store/ops/a.c '\tq = "SELECT id FROM jobs";'
planted sql "$query" src/store/ops/a.c '\tq = "UPDATE runs SET state = 1";'
planted sql "$query" src/daemon/schedule/a.c '\tq = "INSERT OR IGNORE INTO runs VALUES (1)";'
planted sql "no connection statement is outside the backends" src/store/ops/a.c '\tq = "BEGIN IMMEDIATE";'

word="no word marks unfinished work"
planted files "$word" src/base/a.c '/* TO''DO: the rest */'
planted files "$word" src/base/a.c '/* this will do for ''now */'
planted files "no line ends in blanks" src/base/a.c '\tint x; '
fresh
printf '/* A purpose. */\n/* The same purpose. */\n' >"$work/tree/src/base/b.c"
lint "files.sh finds a file without a licence" caught files "every file names its licence"
fresh
printf '%s\n#include <stdio.h>\n' "$spdx" >"$work/tree/src/base/b.c"
lint "files.sh finds a C file without a purpose" caught files "every C file states its purpose in the second line"
fresh
printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\nset -e\n' >"$work/tree/src/base/b.sh"
lint "files.sh finds a script without a purpose" caught files "every script and query file states its purpose"

long=$(awk 'BEGIN { for (i = 0; i < 101; i++) printf "\\tf();\\n" }')
planted sizes "no function has more than 100 lines" src/base/a.c "int g(void)\n{\n$long}" "a function of 101 lines"

header="no header declares a mutable variable"
planted state "$header" src/base/a.h 'extern int counter;'
planted state "$header" src/base/a.h 'extern const char *names[];'
static="no file has a mutable static variable"
planted state "$static" src/core/job/a.c 'static int counter;'
planted state "$static" src/core/job/a.c 'static const char *names[] = { "a" };'
planted state "$static" src/core/job/a.c '\tstatic bool once = false;'
planted state "$static" src/core/job/a.c 'static struct x *list;'
planted state "$static" src/core/job/a.c 'static int (*hook)(int x);'
fresh
printf 'static const char *const n[] = { "a" };\nstatic const struct x t[] = {\nstatic int f(int x);\nstatic int (*const g[2])(int x);\nstatic int (*h(int y))(int x)\nextern const struct x y[];\n' \
	>>"$work/tree/src/core/job/a.c"
lint "state.sh accepts constants and functions" clean state

planted paths "no source names a directory of the build machine" src/base/a.c '/* see /ho''me/me/x */'

fresh
sed -i '/^\.It Fl n/,+1d' "$work/tree/man/jobctl.1"
lint "manual.sh finds an option that is not in the manual" caught manual \
	"every option that jobctl --help names is in its manual page"
fresh
sed -i 's/^\.It Fl -help/.It Fl -gone\nGone.\n.It Fl -help/' "$work/tree/man/jobschedd.8"
lint "manual.sh finds an option that is only in the manual" caught manual \
	"every option in the manual page of jobschedd is in its --help"
fresh
sed -i 's/^\.It Ic store/.It Ic shop/' "$work/tree/man/jobschedd.conf.5"
lint "manual.sh finds a configuration key that is not in the manual" caught manual \
	"jobschedd.conf.5. describes exactly the keys of the program"
fresh
sed -i 's/^\.Ss add/.Ss sub/' "$work/tree/man/jobctl.1"
lint "manual.sh finds a verb that is not in the manual" caught manual "every verb of jobctl is in its manual page"
fresh
printf '.Xr jobsched-gone 7\n' >>"$work/tree/man/jobctl.1"
lint "manual.sh finds a reference to a page that does not exist" caught manual \
	"references between manual pages are correct"
fresh
printf '.Sx GONE\nin\n.Xr jobschedd 8\n' >>"$work/tree/man/jobctl.1"
lint "manual.sh finds a reference to a section that does not exist" caught manual \
	"references between manual pages are correct"
fresh
sed -i 's/^\.Nd .*/.Nope/' "$work/tree/man/jobctl.1"
lint "manual.sh finds a bad manual page" caught manual "mandoc reports no findings"

fresh
sed -i 's/^Restart=/Restrat=/' "$work/build/systemd/jobschedd.service"
lint "units.sh finds a setting that systemd does not know" caught units "systemd accepts the units"
fresh
sed -i '/^ProtectSystem=/d; /^PrivateNetwork=/d' "$work/build/systemd/jobschedd.service"
lint "units.sh finds a daemon with a higher exposure" caught units "the exposure of jobschedd is at most 0.6"

# The page: a module, the document, and the list in Makefile.am.
fresh_page() {
	fresh
	mkdir -p "$work/tree/src/web"
	cp "$lints/../../src/web/embed.sh" "$work/tree/src/web/"
	echo "export const a = 1;" >"$work/tree/src/web/a.js"
	echo "import {a} from './a.js';" >"$work/tree/src/web/b.js"
	echo "* { margin: 0; }" >"$work/tree/src/web/a.css"
	echo '<script src="/ui/b.js" type="module"></script>' >"$work/tree/src/web/index.html"
	echo '<svg/>' >"$work/tree/src/web/a.svg"
	echo 'WEB_FILES = src/web/a.js src/web/b.js src/web/a.css src/web/index.html src/web/a.svg' >"$work/tree/Makefile.am"
}
fresh_page
lint "web.sh passes on a clean page" clean web
echo "export const f = (e, text) => { e.innerHTML = text; };" >>"$work/tree/src/web/a.js"
lint "web.sh finds text that becomes markup" caught web "text of jobs cannot become markup or code"
fresh_page
echo "import {missing} from './a.js';" >>"$work/tree/src/web/b.js"
lint "web.sh finds a name that is not exported" caught web "every import exists"
fresh_page
head -c 60000 /dev/urandom | od -An -tx1 | sed "s|.*|'&';|" >>"$work/tree/src/web/b.js"
lint "web.sh finds a page that is too large" caught web "the compressed files have at most 40000 bytes"

fresh
for name in config.h libexec.a at crontab jobctl jobsched-at-run jobsched-crontab jobsched-init jobsched-net jobsched-spawner jobschedd; do
	cp "$programs/$name" "$work/build/"
done
lint "links.sh passes on the build" clean links
cp "$programs/jobschedd" "$work/build/jobctl"
lint "links.sh finds a jobctl with a database" caught links "jobctl is linked with no database and no server"
cp "$programs/jobctl" "$work/build/"
cp "$programs/jobctl" "$work/build/jobsched-spawner"
both() {
	run links
	[ "$(grep -c '^not ok.*the spawner is linked' "$work/out")" -eq 2 ] || cat "$work/out"
}
lint "links.sh finds a spawner with a parser" both
rm "$work/build/config.h"
echo grant.pre_commit >>"$work/build/jobctl"
traced() {
	run links
	grep -q '^# jobctl: names of failpoints' "$work/out" || cat "$work/out"
}
lint "links.sh finds a program with failpoints" traced
finish
