# SPDX-License-Identifier: Apache-2.0
# The generator of statement tables: a difference between the two .sql files ends the build, and says where.
. "$(dirname "$0")/../../tap.sh"

cd "$top_srcdir" || exit 1
: "${AWK:=awk}"
generator=$PWD/src/store/backend/sql/generate.awk
headers="$PWD/src/core/job/run.h $PWD/src/core/job/job.h $PWD/src/core/job/notice.h"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fresh() {
	cat >"$work/sqlite.sql" <<-'SQL'
	-- define cols = id int, name text
	-- migration 1
	CREATE TABLE t (id INT, name TEXT, state INT);
	-- text begin
	BEGIN
	-- query one(id int, name text) -> {cols}
	SELECT id, name FROM t
	WHERE id = :id AND name = :name AND state = RUN_FAILED AND 'a:id' <> '';
	-- query two(set json)
	DELETE FROM t WHERE id IN (SELECT value FROM json_each(:set))
	SQL
	sed 's/^BEGIN/START/' "$work/sqlite.sql" >"$work/postgres.sql"
}

generate() {
	(cd "$work" && $AWK -v out="$1" -f "$generator" $headers sqlite.sql postgres.sql)
}

# refuses MESSAGE FILE SED: after that change the generator fails and says so
refuses() {
	fresh
	sed -i "$3" "$work/$2"
	if said=$(generate source 2>&1 >/dev/null); then
		echo "it did not fail"
	fi
	case $said in
	*"$1"*) ;;
	*) echo "it said: $said" ;;
	esac
}

accepts() {
	fresh
	generate header >"$work/out.h" && generate source >"$work/out.c" || echo "it failed"
	grep -q 'Q_ONE,' "$work/out.h" || echo "no name"
	grep -q 'WHERE id = ?1 AND name = ?2 AND state = 4 AND .a:id. <> ' "$work/out.c" || echo "SQLite's parameters"
	grep -q 'WHERE id = $1::bigint AND name = $2::text AND state = 4' "$work/out.c" || echo "PostgreSQL's parameters"
	grep -q 'json_each($1::jsonb)' "$work/out.c" || echo "a set"
	grep -q '_Static_assert(RUN_FAILED == 4' "$work/out.c" || echo "the number is not checked"
}

ours() {
	cp src/store/backend/sql/*.sql "$work"
	generate source 2>&1 >/dev/null
}

lint "two files that agree become tables" accepts
lint "our own files agree" ours
lint "a query in one file only ends the build" refuses "query 'two' is only in sqlite.sql" postgres.sql '/query two/,$d'
lint "a query in the other file only ends the build" refuses "only in postgres.sql" sqlite.sql '/query two/,$d'
lint "another name of a parameter ends the build" refuses "query 'one' takes" postgres.sql \
	's/(id int,/(ident int,/; s/= :id /= :ident /'
lint "another type of a parameter ends the build" refuses "query 'one' takes" postgres.sql 's/name text)/name json)/'
lint "one parameter more ends the build" refuses "query 'two' takes" postgres.sql 's/(set json)/(set json, x int)/; s/(:set)/(:set) + :x/'
lint "another type of a column ends the build" refuses "query 'one' gives" postgres.sql 's/= id int, name text/= id text, name text/'
lint "one column less ends the build" refuses "query 'one' gives" sqlite.sql 's/= id int, name text/= id int/'
lint "another number of migrations ends the build" refuses "migrations" postgres.sql \
	's/^-- text begin/-- migration 2\nALTER TABLE t ADD x INT;\n-- text begin/'
lint "a migration out of order ends the build" refuses "migration 3 where 1" postgres.sql 's/migration 1/migration 3/'
lint "an undeclared parameter ends the build" refuses "':nam' is not declared" sqlite.sql 's/:name/:nam/'
lint "an unused parameter ends the build" refuses "'name' is never used" postgres.sql 's/ AND name = :name//'
lint "an unknown state ends the build" refuses "RUN_FALLEN" sqlite.sql 's/RUN_FAILED/RUN_FALLEN/'
lint "the same name twice ends the build" refuses "there twice" sqlite.sql 's/query two(set json)/query one(set json)/'
lint "an unknown define ends the build" refuses "no define" sqlite.sql 's/{cols}/{colls}/'
finish
