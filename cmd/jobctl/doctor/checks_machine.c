/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the machine: files, clock, control groups, units. */
#include "base/auto.h"
#include "base/io.h"
#include "base/local_zone.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/zone_cache.h"
#include "jobctl/ctl.h"
#include "jobctl/doctor/doctor.h"
#include "jobctl/member.h"
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#define FREE_WARNING (INT64_C(512) << 20) /* bytes; also 5 % of a small file system */
#define FREE_ERROR (INT64_C(32) << 20)
#define FILE_SMALL (64 * 1024)
#define CERTIFICATE_DAYS "2592000" /* 30 days in seconds */

/* ---- configuration ---- */

void doctor_check_config(struct doctor *d)
{
	AUTO_TEXT command = xprintf("edit '%s'; jobschedd %s--print-config", d->paths.config,
		d->system ? "" : "--user ");
	char *said = d->config_problem.data;

	if (d->config.len > 0)
		return;
	if (said)
		said[strcspn(said, "\n")] = '\0';
	if (!said)
		doctor_skip(d, "the program jobschedd was not found");
	else if (strstr(said, strerror(EACCES)))
		doctor_skip(d, "you may not read the configuration");
	else
		doctor_find(d, DOCTOR_ERROR, command, "the configuration is not valid: %.300s", said);
}

/* ---- permissions ---- */

/* Only the owner may write; in system mode a configuration belongs to root. */
static void check_path(struct doctor *d, const char *path, bool of_root)
{
	AUTO_TEXT chmod = xprintf("chmod go-w '%s'", path);
	AUTO_TEXT chown = xprintf("chown root '%s'", path);
	AUTO_TEXT list = xprintf("ls -ld '%s'", path);
	struct stat st;

	if (stat(path, &st) < 0) {
		if (errno != ENOENT && errno != EACCES)
			doctor_find(d, DOCTOR_WARNING, chmod, "cannot read '%s': %s", path, strerror(errno));
		return;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH) && !(S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX))
		doctor_find(d, DOCTOR_ERROR, chmod, "others than the owner can write '%s'", path);
	if (of_root && st.st_uid != 0)
		doctor_find(d, DOCTOR_ERROR, chown, "'%s' does not belong to root", path);
	if (!d->system && st.st_uid != geteuid())
		doctor_find(d, DOCTOR_ERROR, list, "'%s' does not belong to you", path);
}

void doctor_check_permissions(struct doctor *d)
{
	AUTO_TEXT config_dir = xstrndup(d->paths.config, strlen(d->paths.config) -
		(strrchr(d->paths.config, '/') ? strlen(strrchr(d->paths.config, '/')) : 0));
	AUTO_TEXT spawner_conf = xprintf("%s/spawner.conf", config_dir);

	check_path(d, d->paths.state_dir, false);
	check_path(d, d->paths.runtime_dir, false);
	check_path(d, d->paths.config, d->system);
	check_path(d, config_dir, d->system);
	if (d->system)
		check_path(d, spawner_conf, true);
}

/* ---- disk ---- */

static void check_space(struct doctor *d, const char *path)
{
	AUTO_TEXT command = xprintf("df -h '%s'; jobctl db prune", path);
	struct statvfs v;
	int64_t room, all;

	if (statvfs(path, &v) < 0 || v.f_blocks == 0)
		return;
	room = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
	all = (int64_t)v.f_blocks * (int64_t)v.f_frsize;
	if (room < FREE_ERROR)
		doctor_find(d, DOCTOR_ERROR, command, "the file system of '%s' has only %lld MiB left", path,
			(long long)(room >> 20));
	else if (room < FREE_WARNING && room < all / 20)
		doctor_find(d, DOCTOR_WARNING, command, "the file system of '%s' has only %lld MiB left", path,
			(long long)(room >> 20));
	if (v.f_files > 0 && v.f_favail < v.f_files / 100)
		doctor_find(d, DOCTOR_WARNING, command, "the file system of '%s' has few free inodes", path);
}

void doctor_check_disk(struct doctor *d)
{
	struct stat a = {}, b = {};

	check_space(d, d->paths.state_dir);
	if (stat(d->paths.state_dir, &a) == 0 && stat(d->paths.output_dir, &b) == 0 && a.st_dev != b.st_dev)
		check_space(d, d->paths.output_dir);
	check_space(d, d->paths.runtime_dir);
}

/* ---- time ---- */

void doctor_check_clock(struct doctor *d)
{
	const char *clock = member_text(d->status, "clock");
	struct timex t = {};

	if (clock && strcmp(clock, "ok") != 0)
		doctor_find(d, DOCTOR_WARNING, "jobctl status", "the daemon reports its clock as '%s'", clock);
	if (adjtimex(&t) >= 0 && t.status & STA_UNSYNC)
		doctor_find(d, DOCTOR_WARNING, "timedatectl set-ntp true",
			"the kernel's clock is not synchronised by NTP");
}

void doctor_check_zoneinfo(struct doctor *d)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_TEXT local = local_zone();
	const char *const names[] = {"Europe/Berlin", local};
	const struct zone *z;
	struct err e = {};

	for (size_t i = 0; i < ELEMENTS(names); i++)
		if (strcmp(names[i], "UTC") != 0 && !zone_cache_get(zones, names[i], &z, &e)) {
			doctor_find(d, DOCTOR_ERROR, doctor_install("tzdata"), "time zones cannot be read: %s", e.msg);
			return;
		}
}

/* ---- control groups ---- */

/* The control group of the spawner in system mode, else that of this process. */
static char *group_directory(const struct doctor *d)
{
	AUTO_DONE(buf) text = {};
	const char *at;

	if (d->system)
		return xstrdup("/sys/fs/cgroup/system.slice/jobsched-spawner.service");
	if (io_read_file("/proc/self/cgroup", &text, FILE_SMALL) < 0 || !text.data)
		return NULL;
	at = strstr(text.data, "0::");
	return at ? xprintf("/sys/fs/cgroup%.*s", (int)strcspn(at + 3, "\n"), at + 3) : NULL;
}

void doctor_check_cgroup(struct doctor *d)
{
	static const char *const wanted[] = {"cpu", "memory", "pids"};
	AUTO_TEXT directory = NULL;
	AUTO_TEXT file = NULL;
	AUTO_DONE(buf) text = {};

	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) < 0) {
		doctor_find(d, DOCTOR_WARNING, "boot with systemd.unified_cgroup_hierarchy=1",
			"this machine has no control groups version 2; --mem, --cpu and --pids are refused");
		return;
	}
	directory = group_directory(d);
	file = directory ? xprintf("%s/cgroup.controllers", directory) : NULL;
	if (!file || io_read_file(file, &text, FILE_SMALL) < 0) {
		doctor_skip(d, "the control group of the spawner does not exist");
		return;
	}
	for (size_t i = 0; i < ELEMENTS(wanted); i++)
		if (!text.data || !strstr(text.data, wanted[i]))
			doctor_find(d, d->system ? DOCTOR_WARNING : DOCTOR_NOTE,
				d->system ? "systemctl edit jobsched-spawner (Delegate=yes)"
					  : "systemctl --user start jobschedd",
				"the controller '%s' is not delegated; limits that need it are refused", wanted[i]);
}

/* ---- systemd ---- */

static void check_unit(struct doctor *d, const char *unit)
{
	const char *argv[] = {"systemctl", "show", "-p", "ActiveState", "-p", "LoadState", "-p", "Result",
		unit, d->system ? NULL : "--user", NULL};
	AUTO_TEXT command = xprintf("systemctl %sstatus %s; journalctl %s-u %s", d->system ? "" : "--user ", unit,
		d->system ? "" : "--user ", unit);
	AUTO_DONE(buf) out = {};

	if (doctor_run(argv, &out) != 0 || !out.data || !strstr(out.data, "LoadState=loaded"))
		return;
	if (strstr(out.data, "ActiveState=failed"))
		doctor_find(d, DOCTOR_ERROR, command, "the unit %s has failed", unit);
	else if (strstr(out.data, "ActiveState=activating"))
		doctor_find(d, DOCTOR_WARNING, command, "the unit %s is being started again and again", unit);
}

void doctor_check_units(struct doctor *d)
{
	static const char *const units[] = {
		"jobschedd.service", "jobsched-spawner.service", "jobsched-net.service"};

	for (size_t i = 0; i < (d->system ? ELEMENTS(units) : 1); i++)
		check_unit(d, units[i]);
}

void doctor_check_linger(struct doctor *d)
{
	const struct passwd *pw = getpwuid(geteuid());
	AUTO_TEXT file = pw ? xprintf("/var/lib/systemd/linger/%s", pw->pw_name) : NULL;

	if (geteuid() == 0)
		doctor_skip(d, "root's processes survive a logout");
	else if (file && access(file, F_OK) < 0)
		doctor_find(d, DOCTOR_WARNING, "loginctl enable-linger",
			"the daemon ends with your last session: lingering is off");
}

/* ---- warrants ---- */

void doctor_check_warrants(struct doctor *d)
{
	AUTO_DONE(buf) text = {};

	if (io_read_file(JOBSCHED_SYSCONFDIR "/spawner.conf", &text, FILE_SMALL) < 0) {
		doctor_skip(d, "there is no spawner.conf; the defaults apply");
		return;
	}
	for (const char *line = text.data; line && *line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *at = line + strspn(line, " \t");

		if (!text_starts(at, "require-warrant"))
			continue;
		at += strlen("require-warrant");
		at += strspn(at, " \t=");
		if (text_starts(at, "none"))
			doctor_find(d, DOCTOR_WARNING, "edit " JOBSCHED_SYSCONFDIR "/spawner.conf: require-warrant = root",
				"'require-warrant = none': the user of the daemon can run any command as root");
	}
}

/* ---- certificates ---- */

void doctor_check_certificates(struct doctor *d)
{
	size_t found = 0;

	for (const char *line = d->config.data; line && *line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		AUTO_TEXT key = xstrndup(line, strcspn(line, " \n"));
		bool named = strstr(key, "certificate") || strstr(key, "-ca");
		AUTO_TEXT file = named ? doctor_config(d, key) : NULL;
		const char *const argv[] = {
			"openssl", "x509", "-checkend", CERTIFICATE_DAYS, "-noout", "-in", file, NULL};
		AUTO_DONE(buf) out = {};
		int code;

		if (!file || file[0] != '/')
			continue;
		found++;
		code = doctor_run(argv, &out);
		if (code == 1)
			doctor_find(d, DOCTOR_WARNING, "systemctl reload jobschedd (after renewing the certificate)",
				"the certificate '%s' expires within 30 days or cannot be read", file);
		else if (code < 0)
			doctor_skip(d, "the program openssl is not installed");
	}
	if (found == 0)
		doctor_skip(d, "no certificate is configured");
}
