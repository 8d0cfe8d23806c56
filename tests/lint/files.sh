# SPDX-License-Identifier: Apache-2.0
# Checks the licence and purpose lines of every file, and words that mark unfinished work.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
all() {
	sources '*.c' '*.h' '*.sql' '*.sh' '*.bats' '*.py' '*.awk' '*.service' '*.socket' '*.[1578]' '*.yaml'
	for name in Makefile.am configure.ac autogen.sh quickstart runtests .ci/run; do
		[ ! -f "$name" ] || echo "$name"
	done
}


licence() {
	all | xargs awk '
	function verdict() { if (seen && !spdx) print file ": no SPDX-License-Identifier in its first three lines" }
	FNR == 1 { verdict(); seen = 1; spdx = 0; file = FILENAME }
	FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { spdx = 1 }
	END { verdict() }'
}
lint "every file names its licence" licence

purpose_c() {
	sources '*.c' '*.h' | xargs awk '
	FNR == 2 { open = /^\/\*$/ }
	FNR == 2 && !open && !/^\/\* ?[\042\047A-Za-z].*[a-z]/ || FNR == 3 && open && !/^ \* [A-Za-z].*[a-z]/ {
		print FILENAME ": the second line does not state its purpose" }'
}
lint "every C file states its purpose in the second line" purpose_c

purpose_script() {
	sources '*.sh' '*.bats' '*.py' '*.sql' '*.awk' | xargs awk '
	function verdict() { if (seen && !said) print file ": no line states its purpose" }
	FNR == 1 { verdict(); seen = 1; said = 0; file = FILENAME }
	FNR <= 4 && /^(#|--|""") ?[A-Za-z].*[a-z]/ && !/SPDX/ { said = 1 }
	END { verdict() }'
}
lint "every script and query file states its purpose" purpose_script

# The words are split, so that the lint does not find itself.
unfinished() {
	words='TO''DO|FIX''ME|XX''X|place''holder|for ''now|not (yet )?imple''mented|stub''bed'
	all | xargs grep -nE "(^|[^A-Za-z_])($words)([^A-Za-z_]|\$)"
}
lint "no word marks unfinished work" unfinished

blanks() {
	all | xargs grep -nE '[ 	]+$' | cut -c1-120
}
lint "no line ends in blanks" blanks
finish
