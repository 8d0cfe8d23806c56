# SPDX-License-Identifier: Apache-2.0
# The functions of './quickstart cluster', which quickstart sources: PostgreSQL, three nodes, and the death of one of them.
#
# The caller sets state (a directory), jobctl (a path), say() and fail(). Files are kept in two directories:
#   $state/cluster    configuration, logs, state of the nodes, and the database if the caller is not root
#   $place            sockets, below /tmp because their paths must be short. PostgreSQL does not run as root: if the caller is
#                     root, the directory belongs to the user postgres and has the database, too
cluster=$state/cluster
nodes='1 2 3'
lease=3
run_lease=5

cluster_paths() {
	place=$(cat "$cluster/place" 2>/dev/null) && [ -d "$place" ] || return 1
	data=$cluster/data
	[ "$(id -u)" -ne 0 ] || data=$place/data
}

# Prints the directory of PostgreSQL's programs, of the newest version if there are several.
pg_bin() {
	for dir in /usr/lib/postgresql/*/bin; do
		[ ! -x "$dir/initdb" ] || echo "$dir"
	done | sort -t / -k 5 -n | tail -n 1
}

pg() {
	program=$(pg_bin)/$1
	shift
	if [ "$(id -u)" -eq 0 ]; then
		(cd / && setpriv --reuid postgres --regid postgres --init-groups "$program" "$@")
	else
		"$program" "$@"
	fi
}

cluster_place() {
	mkdir -p "$cluster" && chmod 700 "$cluster" || fail "could not make '$cluster'"
	cluster_paths && return
	place=$(mktemp -d /tmp/jobsched-cluster.XXXXXX) && echo "$place" >"$cluster/place" && cluster_paths ||
		fail "could not make a directory for sockets"
	[ "$(id -u)" -ne 0 ] || chown postgres:postgres "$place" || fail "there is no user 'postgres'; reinstall postgresql-common"
}

cluster_database() {
	if pg pg_ctl -D "$data" status >/dev/null 2>&1; then
		say database "already running"
		return
	fi
	[ -f "$data/PG_VERSION" ] ||
		pg initdb -D "$data" -U jobsched -A trust -E UTF8 --locale=C --no-sync >"$cluster/initdb.log" 2>&1 ||
		fail "could not make a database" "$cluster/initdb.log"
	pg pg_ctl -D "$data" -w -t 60 -l "$place/postgresql.log" \
		-o "-c listen_addresses='' -c unix_socket_directories='$place' -c max_connections=60" start >"$cluster/pg_ctl.log" 2>&1 ||
		fail "PostgreSQL does not start" "$place/postgresql.log"
	say database "PostgreSQL $(cat "$data/PG_VERSION") started, on a Unix socket in $place"
}

# ctl NODE ARGUMENT...: calls jobctl with the daemon of a node
ctl() {
	node=$1
	shift
	JOBSCHED_SOCKET=$place/n$node/jobsched/jobsched.sock "$jobctl" "$@" </dev/null
}
# show NODE ARGUMENT...: prints the command, then runs it
show() {
	echo
	echo "[n$1]\$ jobctl$(shift; for word; do case $word in *[!A-Za-z0-9_./=-]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac; done)"
	ctl "$@" || fail "jobctl failed" "$cluster/n$1.log"
}

# cluster_pids PATH [PROGRAM]: the processes of jobsched whose arguments contain the path
cluster_pids() {
	grep -lsaF -e "$1" /proc/[0-9]*/cmdline | cut -d / -f 3 | while read -r pid; do
		program=$({ tr '\0' '\n' <"/proc/$pid/cmdline"; } 2>/dev/null | head -n 1)
		case ${program##*/} in
		jobsched*) [ "${program##*/}" != "${2:-${program##*/}}" ] || echo "$pid" ;;
		esac
	done
}

node_answers() {
	ctl "$1" status >/dev/null 2>&1
	[ $? -ne 5 ] # 5: no daemon answers
}

node_start() {
	mkdir -p "$place/n$1" "$cluster/n$1" && chmod 700 "$place/n$1" || fail "could not make '$place/n$1'"
	cat >"$cluster/n$1.conf" <<-END
		store = postgresql://jobsched@/postgres?host=$place
		node-name = n$1
		lease = $lease
		run-lease = $run_lease
	END
	XDG_STATE_HOME=$cluster/n$1 XDG_RUNTIME_DIR=$place/n$1 \
		setsid build/jobschedd --user --config "$cluster/n$1.conf" >>"$cluster/n$1.log" 2>&1 </dev/null &
}

# Starts the nodes that do not answer, and waits until all are members.
cluster_nodes() {
	for n in $nodes; do
		node_answers "$n" || node_start "$n"
	done
	for _ in $(seq 300); do
		[ "$(ctl 1 nodes --json 2>/dev/null | grep -oE '"state": *"alive"' | wc -l)" -lt 3 ] || return 0
		sleep 0.2
	done
	fail "not all nodes have joined the cluster" "$cluster/n1.log"
}

# output_has TEXT: waits until the output of the demonstration's job has the text, as node $asked shows it
output_has() {
	for _ in $(seq 300); do
		ctl "$asked" log "$job" 2>/dev/null | grep -F "$1" >"$cluster/output" && return
		sleep 0.2
	done
	return 1
}

cluster_demo() {
	asked=1
	echo
	echo "--- Step 1: three nodes share the database. A node that does not renew its lease within $lease s is replaced."
	show 1 nodes
	echo
	echo "--- Step 2: a job is submitted to node n1. Any node may start it."
	show 1 add -- sh -c 'echo "attempt $JOBSCHED_ATTEMPT runs on $JOBSCHED_NODE"; sleep 12; echo finished' >"$cluster/added" 2>&1
	cat "$cluster/added"
	job=$(grep -xE '[0-9]+' "$cluster/added") # the answer is the number of the job
	output_has 'attempt 1 runs on' || fail "the job did not start" "$cluster/n1.log"
	victim=$(sed 's/.* on n//' "$cluster/output")
	[ "$victim" -ne 1 ] || asked=2
	show "$asked" log "$job"
	daemon=$(cluster_pids "$cluster/n$victim.conf" jobschedd)
	spawner=$(cluster_pids "$place/n$victim/" jobsched-spawner)
	echo
	echo "--- Step 3: the daemon and the spawner of node n$victim are killed. Its job ends with the spawner."
	echo "\$ kill -9 $(echo $daemon $spawner)"
	kill -9 $daemon $spawner || fail "could not kill node n$victim"
	began=$(date +%s)
	echo
	echo "--- Step 4: the other nodes wait for the end of its run lease ($run_lease s); then one of them starts the job again."
	output_has 'attempt 2 runs on' || fail "the job did not start on another node" "$cluster/n$asked.log"
	echo "the second attempt started about $(($(date +%s) - began)) s after the kill"
	show "$asked" log "$job" --follow
	show "$asked" runs "$job"
	show "$asked" nodes
	echo
	echo "--- Step 5: node n$victim starts again and becomes a member."
	cluster_nodes
	show "$asked" nodes
	cat <<-END

		It works. The cluster runs on. Next:
		  export PATH="$PWD/build:\$PATH" JOBSCHED_SOCKET=$place/n$asked/jobsched/jobsched.sock
		  jobctl nodes                   list the nodes
		  jobctl add --every 5s -- date  add a job; any node runs it
		  man -l man/jobsched-cluster.7  read about leases and takeover
		To end the cluster and delete its files: ./quickstart stop
	END
}

cluster_run() {
	[ -n "$(pg_bin)" ] || packaging/install-missing.sh cluster || fail "packages are missing"
	[ -n "$(pg_bin)" ] || fail "there is no PostgreSQL below /usr/lib/postgresql"
	cluster_place
	cluster_database
	cluster_nodes
	say nodes "n1, n2 and n3 run; configuration and logs are in $cluster"
	cluster_demo
}

# Ends the daemons, then the spawners, which end their jobs, then the database.
cluster_stop() {
	[ -e "$cluster" ] || return 1
	if cluster_paths; then
		tries=0
		while pids=$(cluster_pids "$cluster/" jobschedd) && pids=${pids:-$(cluster_pids "$place/")} && [ -n "$pids" ]; do
			[ $((tries += 1)) -le 150 ] || fail "processes of the cluster do not end: $(echo $pids)"
			if [ $tries -le 100 ]; then kill $pids; else kill -9 $pids; fi 2>/dev/null
			sleep 0.2
		done
		pg pg_ctl -D "$data" -w -m immediate stop >/dev/null 2>&1
		rm -rf "$place"
	fi
	rm -rf "$cluster"
}
