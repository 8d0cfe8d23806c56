/* SPDX-License-Identifier: Apache-2.0 */
/* Finds other programs of the machine that run crontabs: a process of root, or an enabled unit. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "exec/proto/table_list.h"
#include "exec/spawner/table_reader.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define UNITS "/etc/systemd/system"

static const char *const processes[] = {"cron", "crond", "fcron", "bcron-sched", "dcron"};

/* A unit is started at boot if a target wants it and it is not masked. */
struct unit {
	const char *name, *target;
};
static const struct unit cron_units[] = {{"cron.service", "multi-user"}, {"crond.service", "multi-user"},
	{"cronie.service", "multi-user"}, {"fcron.service", "multi-user"}, {"cron.target", "multi-user"}};
static const struct unit anacron_units[] = {{"anacron.timer", "timers"}, {"anacron.service", "multi-user"}};

/* Only processes of root count: another user could give any process this name. Nor do those of containers. */
static bool is_on_this_machine(const char *pid)
{
	AUTO_TEXT dir = xprintf("/proc/%s", pid);
	AUTO_TEXT namespace = xprintf("/proc/%s/ns/pid", pid);
	AUTO_TEXT program = xprintf("/proc/%s/exe", pid);
	struct stat st, theirs, ours;
	char target[8];

	if (readlink(program, target, sizeof(target)) < 0)
		return false; /* it has exited and was not reaped yet */
	return stat(dir, &st) == 0 && st.st_uid == 0 && stat(namespace, &theirs) == 0 && stat("/proc/self/ns/pid", &ours) == 0 &&
	       theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

static bool process_named(const char *pid, const char *const *names, size_t n, char *comm, size_t size)
{
	AUTO_TEXT path = xprintf("/proc/%s/comm", pid);
	AUTO_DONE(buf) text = {};

	if (io_read_file(path, &text, 64) < 0 || !text.data)
		return false;
	snprintf(comm, size, "%.*s", (int)strcspn(text.data, "\n"), text.data);
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], comm) == 0)
			return true;
	return false;
}

static void process_find(struct table_list *l)
{
	static const char *const anacron[] = {"anacron"};
	DIR *proc = opendir("/proc");
	struct dirent *d;
	char comm[64];

	while (proc && (d = readdir(proc))) {
		int64_t pid;

		if (!text_parse_int(d->d_name, 1, INT32_MAX, &pid))
			continue;
		if (!l->cron && process_named(d->d_name, processes, ELEMENTS(processes), comm, sizeof(comm)) &&
			is_on_this_machine(d->d_name)) {
			l->cron = xprintf("%s (pid %s) is running", comm, d->d_name);
			l->cron_pid = pid;
		} else if (!l->anacron && process_named(d->d_name, anacron, 1, comm, sizeof(comm)) && is_on_this_machine(d->d_name)) {
			l->anacron = xprintf("anacron (pid %s) is running", d->d_name);
		}
	}
	if (proc)
		closedir(proc);
}

static bool unit_is_masked(const char *name)
{
	AUTO_TEXT path = xprintf(UNITS "/%s", name);
	char target[64];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	return n > 0 && (size_t)n == strlen("/dev/null") && memcmp(target, "/dev/null", (size_t)n) == 0;
}

static char *unit_find(const struct unit *units, size_t n)
{
	struct stat st;

	if (stat("/run/systemd/system", &st) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		AUTO_TEXT wanted = xprintf(UNITS "/%s.target.wants/%s", units[i].target, units[i].name);

		if (stat(wanted, &st) == 0 && !unit_is_masked(units[i].name))
			return xprintf("%s is enabled", units[i].name);
	}
	return NULL;
}

void table_cron_find(struct table_list *l)
{
	process_find(l);
	if (!l->cron)
		l->cron = unit_find(cron_units, ELEMENTS(cron_units));
	if (!l->anacron)
		l->anacron = unit_find(anacron_units, ELEMENTS(anacron_units));
}
