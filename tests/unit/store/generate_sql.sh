# SPDX-License-Identifier: Apache-2.0
# Tests generate.awk: a difference between the dialects ends the build with a message.
. "$(dirname "$0")/../../tap.sh"

cd "$top_srcdir" || exit 1
: "${AWK:=awk}"
generator=$PWD/src/store/backend/sql/generate.awk
headers="$PWD/src/core/job/run.h $PWD/src/core/job/job.h $PWD/src/core/job/notice.h"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fresh() {
	cat >"$work/common.sql" <<-'SQL'
	-- define cols = id int, name text
	-- query three(id int) -> state int
	SELECT state FROM t WHERE id = :id AND state = RUN_FAILED AND {live}
	SQL
	cat >"$work/sqlite.sql" <<-'SQL'
	-- migration 1
	CREATE TABLE t (id INT, name TEXT, state INT);
	-- text begin
	BEGIN
	-- define live = state < 3
	-- query one(id int, name text) -> {cols}
	SELECT id, name FROM t
	WHERE id = :id AND name = :name AND state = RUN_FAILED AND 'a:id' <> '';
	-- query two(set json)
	DELETE FROM t WHERE id IN (SELECT value FROM json_each(:set))
	SQL
	sed 's/^BEGIN/START/; s/^SELECT id, name FROM t/SELECT id, name FROM ONLY t/; s/FROM json_each/FROM jsonb_each/; s/state < 3/state + 0 < 3/' \
		"$work/sqlite.sql" >"$work/postgres.sql"
}

generate() {
	(cd "$work" && $AWK -v out="$1" -f "$generator" $headers common.sql sqlite.sql postgres.sql)
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
	grep -q 'jsonb_each($1::jsonb)' "$work/out.c" || echo "a set"
	grep -q 'Q_THREE,' "$work/out.h" || echo "no name of a common query"
	grep -q 'WHERE id = ?1 AND state = 4 AND state < 3' "$work/out.c" || echo "SQLite's common query"
	grep -q 'WHERE id = $1::bigint AND state = 4 AND state + 0 < 3' "$work/out.c" || echo "PostgreSQL's common query"
	grep -q '_Static_assert(RUN_FAILED == 4' "$work/out.c" || echo "the number is not checked"
}

ours() {
	cp src/store/backend/sql/*.sql "$work"
	generate source 2>&1 >/dev/null
}

lint "common.sql and two dialects become tables" accepts
lint "the .sql files of the store are accepted" ours
lint "a query in one file only ends the build" refuses "query 'two' is only in sqlite.sql" postgres.sql '/query two/,$d'
lint "a query in the other file only ends the build" refuses "only in postgres.sql" sqlite.sql '/query two/,$d'
lint "another name of a parameter ends the build" refuses "query 'one' takes" postgres.sql \
	's/(id int,/(ident int,/; s/= :id /= :ident /'
lint "another type of a parameter ends the build" refuses "query 'one' takes" postgres.sql 's/name text)/name json)/'
lint "one parameter more ends the build" refuses "query 'two' takes" postgres.sql 's/(set json)/(set json, x int)/; s/(:set)/(:set) + :x/'
lint "another type of a column ends the build" refuses "query 'one' gives" postgres.sql 's/-> {cols}/-> id text, name text/'
lint "one column less ends the build" refuses "query 'one' gives" sqlite.sql 's/-> {cols}/-> id int/'
lint "another number of migrations ends the build" refuses "migrations" postgres.sql \
	's/^-- text begin/-- migration 2\nALTER TABLE t ADD x INT;\n-- text begin/'
lint "a migration out of order ends the build" refuses "migration 3 where 1" postgres.sql 's/migration 1/migration 3/'
lint "an undeclared parameter ends the build" refuses "':nam' is not declared" sqlite.sql 's/:name/:nam/'
lint "an unused parameter ends the build" refuses "'name' is never used" postgres.sql 's/ AND name = :name//'
lint "an unknown state ends the build" refuses "RUN_FALLEN" sqlite.sql 's/RUN_FAILED/RUN_FALLEN/'
lint "the same name twice ends the build" refuses "there twice" sqlite.sql 's/query two(set json)/query one(set json)/'
lint "an unknown define ends the build" refuses "no define" sqlite.sql 's/{cols}/{colls}/'
lint "a query in common.sql and in a dialect ends the build" refuses "query 'three' is in common.sql and in sqlite.sql" sqlite.sql \
	's/query two(set json)/query three(set json)/'
lint "a common query without a define of a dialect ends the build" refuses "common.sql:2: no define 'live'" postgres.sql '/define live/d'
lint "a query that is the same in both dialects ends the build" refuses "query 'two' is the same in both dialects" postgres.sql \
	's/jsonb_each/json_each/'
lint "a migration in common.sql ends the build" refuses "a migration belongs to sqlite.sql or postgres.sql" common.sql \
	's/^-- define cols/-- migration 1\nSELECT 1;\n-- define cols/'
lint "an undeclared parameter of a common query ends the build" refuses "common.sql:2: query 'three': ':idd' is not declared" common.sql 's/:id/:idd/'
finish
