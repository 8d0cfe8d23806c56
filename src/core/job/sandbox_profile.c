/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in sandbox profiles, and the table of configurable settings. */
#include "core/job/sandbox_profile.h"
#include "base/err.h"
#include "core/job/job.h"
#include <stddef.h>
#include <string.h>

/* One value of a setting: its name in the configuration, and its effect on a job. */
struct choice {
	const char *word, *sentence; /* sentence NULL: no effect */
};
static const struct part {
	const char *key;
	struct choice choices[4];
} parts[SANDBOX_PART_MAX] = {
	[SANDBOX_PRIVILEGES] = {"no-new-privileges",
		{{"no"}, {"yes", "no program gains privileges: sudo, su and other set-user-ID programs have no effect"}}},
	[SANDBOX_CALLS] = {"system-calls",
		{{"all"},
			{"standard", "refused: mounting, kernel modules, kexec, bpf, keyrings, new user namespaces, io_uring, "
				     "programs of another architecture"},
			{"strict", "refused: the calls that 'standard' refuses, tracing, new namespaces of any kind, "
				   "and sockets other than Unix, IPv4, IPv6 and netlink"}}},
	[SANDBOX_LANDLOCK] = {"landlock",
		{{"no"}, {"processes", "processes outside the job cannot be traced or read"},
			{"paths", "processes outside the job cannot be traced or read, and files can be written only in "
				  "temporary directories and in the read-write paths"}}},
	[SANDBOX_SYSTEM] = {"read-only-system",
		{{"no"}, {"yes", "all file systems are read-only except temporary directories and the read-write paths"}}},
	[SANDBOX_TMP] = {"private-tmp", {{"no"}, {"yes", "/tmp and /var/tmp are private, empty, in memory, and deleted after the run"}}},
	[SANDBOX_DEV] = {"private-dev",
		{{"no"}, {"yes", "/dev is private and has only null, zero, full, random, urandom, tty and shm"}}},
	[SANDBOX_RUN] = {"private-run",
		{{"no"}, {"yes", "/run is empty: the job cannot reach the sockets of services or of the owner's session"}}},
	[SANDBOX_PIDS] = {"private-pids", {{"no"}, {"yes", "the job sees and signals only its own processes; all of them end with the run"}}},
	[SANDBOX_IPC] = {"private-ipc", {{"no"}, {"yes", "System V IPC objects and POSIX message queues are private"}}},
	[SANDBOX_NETWORK] = {"network",
		{{"host"}, {"none", "no network, not even the loopback interface"},
			{"loopback", "no network except a private loopback interface"}}},
};

/* In the order of the kernel's capability numbers. */
static const char *const capability_names[SANDBOX_CAPABILITIES] = {"chown", "dac_override", "dac_read_search", "fowner",
	"fsetid", "kill", "setgid", "setuid", "setpcap", "linux_immutable", "net_bind_service", "net_broadcast", "net_admin",
	"net_raw", "ipc_lock", "ipc_owner", "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin",
	"sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write",
	"audit_control", "setfcap", "mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read",
	"perfmon", "bpf", "checkpoint_restore"};

#define BIT(n) (UINT64_C(1) << (n))
/*
 * For scripts of administrators; without modules, raw devices, mounting, reboot, clock, tracing and
 * bpf.
 */
#define CAPS_STANDARD (BIT(0) | BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8) | BIT(9) | BIT(10) | \
	BIT(11) | BIT(12) | BIT(13) | BIT(14) | BIT(15) | BIT(18) | BIT(23) | BIT(24) | BIT(27) | BIT(28) | BIT(29) | BIT(31) | BIT(34))

static const struct {
	const char *word;
	uint64_t mask;
} capability_sets[] = {{"all", SANDBOX_CAPS_ALL}, {"standard", CAPS_STANDARD}, {"none", 0}};

static const struct sandbox ours[] = {
	{.name = (char *)"compat", .capabilities = SANDBOX_CAPS_ALL},
	{.name = (char *)"standard", .capabilities = CAPS_STANDARD,
		.part = {[SANDBOX_PRIVILEGES] = 1, [SANDBOX_CALLS] = CALLS_STANDARD, [SANDBOX_LANDLOCK] = LANDLOCK_PROCESSES}},
	{.name = (char *)"strict", .capabilities = 0,
		.part = {[SANDBOX_PRIVILEGES] = 1, [SANDBOX_CALLS] = CALLS_STRICT, [SANDBOX_LANDLOCK] = LANDLOCK_PATHS,
			[SANDBOX_SYSTEM] = 1, [SANDBOX_TMP] = 1, [SANDBOX_DEV] = 1, [SANDBOX_RUN] = 1, [SANDBOX_PIDS] = 1, [SANDBOX_IPC] = 1,
			[SANDBOX_NETWORK] = NETWORK_NONE}},
};

void sandbox_done(struct sandbox *s)
{
	free(s->name);
	strv_done(&s->read_write);
	*s = (struct sandbox){};
}

void sandbox_profile_copy(struct sandbox *to, const struct sandbox *from)
{
	*to = *from;
	to->name = xstrdup(from->name);
	to->read_write = (struct strv){};
	strv_copy(&to->read_write, &from->read_write);
}

void sandbox_profiles_init(struct sandbox_profiles *l)
{
	l->n = ELEMENTS(ours);
	l->v = xcalloc(l->n, sizeof(*l->v));
	for (size_t i = 0; i < l->n; i++)
		sandbox_profile_copy(&l->v[i], &ours[i]);
}

void sandbox_profiles_done(struct sandbox_profiles *l)
{
	for (size_t i = 0; i < l->n; i++)
		sandbox_done(&l->v[i]);
	free(l->v);
	*l = (struct sandbox_profiles){};
}

struct sandbox *sandbox_profiles_find(const struct sandbox_profiles *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].name, name) == 0)
			return &l->v[i];
	return NULL;
}

bool sandbox_profile_name_check(const char *name, struct err *e)
{
	if (strlen(name) >= SANDBOX_NAME_MAX || !job_name_check(name, NULL))
		return err_field(e, "sandbox", "'%.64s' is not a valid name of a sandbox profile: up to %d letters, digits, '.', '_' and '-'",
			name, SANDBOX_NAME_MAX - 1);
	return true;
}

bool sandbox_profiles_add(struct sandbox_profiles *l, const char *name, struct sandbox **ret, struct err *e)
{
	struct sandbox *s;

	if (!sandbox_profile_name_check(name, e))
		return false;
	*ret = sandbox_profiles_find(l, name);
	if (*ret)
		return true;
	l->v = xrealloc(l->v, (l->n + 1) * sizeof(*l->v));
	s = &l->v[l->n++];
	sandbox_profile_copy(s, &ours[ELEMENTS(ours) - 1]);
	free(s->name);
	s->name = xstrdup(name);
	*ret = s;
	return true;
}

/* ---- keys ---- */

static bool next_word(const char **pos, const char **word, size_t *len)
{
	*word = *pos + strspn(*pos, " \t,");
	*len = strcspn(*word, " \t,");
	*pos = *word + *len;
	return *len > 0;
}

static bool set_capabilities(struct sandbox *s, const char *value, struct err *e)
{
	const char *word;
	uint64_t mask = 0;
	size_t len;

	for (size_t i = 0; i < ELEMENTS(capability_sets); i++)
		if (strcmp(capability_sets[i].word, value) == 0) {
			s->capabilities = capability_sets[i].mask;
			return true;
		}
	for (const char *pos = value; next_word(&pos, &word, &len);) {
		int i = 0;

		while (i < SANDBOX_CAPABILITIES &&
			(strlen(capability_names[i]) != len || strncmp(capability_names[i], word, len) != 0))
			i++;
		if (i == SANDBOX_CAPABILITIES)
			return err_set(e, ERR_INVALID, "'%.*s' is not a capability; write all, standard, none, or names like "
						       "chown and net_admin", (int)(len > 40 ? 40 : len), word);
		mask |= BIT(i);
	}
	s->capabilities = mask;
	return true;
}

static bool path_plain(const char *path)
{
	if (strcmp(path, "%h") != 0 && strncmp(path, "%h/", 3) != 0 && path[0] != '/')
		return false;
	for (const char *at = path; (at = strstr(at, "/..")); at++)
		if (at[3] == '/' || !at[3])
			return false;
	return true;
}

static bool set_paths(struct sandbox *s, const char *value, struct err *e)
{
	const char *word;
	size_t len;

	strv_done(&s->read_write);
	for (const char *pos = value; next_word(&pos, &word, &len);) {
		AUTO_TEXT path = xstrndup(word, len);

		if (!path_plain(path) || len > 1024)
			return err_set(e, ERR_INVALID, "'%.100s' is not an absolute path without '..', nor one that begins with %%h", path);
		if (s->read_write.n == SANDBOX_PATHS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d paths", SANDBOX_PATHS_MAX);
		strv_add(&s->read_write, path);
	}
	return true;
}

static bool set_available(struct sandbox *s, const char *value, struct err *e)
{
	s->unavailable = strcmp(value, "no") == 0;
	return s->unavailable || strcmp(value, "yes") == 0 || err_set(e, ERR_INVALID, "'%.40s' is not yes or no", value);
}

static bool set_part(struct sandbox *s, enum sandbox_part p, const char *value, struct err *e)
{
	AUTO_DONE(buf) words = {};

	for (size_t i = 0; i < ELEMENTS(parts[p].choices) && parts[p].choices[i].word; i++) {
		if (strcmp(parts[p].choices[i].word, value) == 0) {
			s->part[p] = (uint8_t)i;
			return true;
		}
		buf_printf(&words, "%s%s", i ? ", " : "", parts[p].choices[i].word);
	}
	return err_set(e, ERR_INVALID, "'%.40s' is not one of %s", value, words.data);
}

static bool set_base(const struct sandbox_profiles *l, struct sandbox *s, const char *value, struct err *e)
{
	const struct sandbox *from = sandbox_profiles_find(l, value);
	AUTO_TEXT name = NULL;

	if (!from)
		return err_set(e, ERR_NOT_FOUND, "there is no sandbox profile '%.64s' before this one", value);
	if (from == s)
		return true; /* a changed built-in profile */
	name = STEAL(s->name);
	sandbox_done(s);
	sandbox_profile_copy(s, from);
	free(s->name);
	s->name = STEAL(name);
	return true;
}

static const struct {
	const char *key;
	bool (*set)(struct sandbox *s, const char *value, struct err *e);
} other_keys[] = {{"capabilities", set_capabilities}, {"read-write", set_paths}, {"available", set_available}};

bool sandbox_profiles_set(struct sandbox_profiles *l, struct sandbox *s, const char *key, const char *value, struct err *e)
{
	bool known = strcmp(key, "base") == 0, ok = known && set_base(l, s, value, e);

	for (int i = 0; i < SANDBOX_PART_MAX && !known; i++)
		if (strcmp(parts[i].key, key) == 0) {
			known = true;
			ok = set_part(s, (enum sandbox_part)i, value, e);
		}
	for (size_t i = 0; i < ELEMENTS(other_keys) && !known; i++)
		if (strcmp(other_keys[i].key, key) == 0) {
			known = true;
			ok = other_keys[i].set(s, value, e);
		}
	if (!known)
		return err_set(e, ERR_INVALID, "a sandbox profile has no key '%.40s'", key);
	return ok || err_wrap(e, "%s", key);
}

bool sandbox_profile_check(const struct sandbox *s, struct err *e)
{
	if (s->part[SANDBOX_PRIVILEGES])
		return true;
	if (s->part[SANDBOX_CALLS] || s->part[SANDBOX_LANDLOCK] || s->capabilities != SANDBOX_CAPS_ALL)
		return err_set(e, ERR_INVALID, "sandbox profile '%s': system-calls, landlock and capabilities other than all need "
					       "no-new-privileges = yes", s->name);
	return true;
}

/* ---- descriptions ---- */

const char *sandbox_profile_part_key(enum sandbox_part p)
{
	return parts[p].key;
}

const char *sandbox_profile_part_word(const struct sandbox *s, enum sandbox_part p)
{
	return parts[p].choices[s->part[p]].word;
}

void sandbox_profile_capability_names(uint64_t mask, struct buf *out)
{
	const char *sep = "";

	for (int i = 0; i < SANDBOX_CAPABILITIES; i++)
		if (mask & BIT(i)) {
			buf_printf(out, "%s%s", sep, capability_names[i]);
			sep = ", ";
		}
}

static void capabilities_words(uint64_t mask, struct buf *out)
{
	if (mask == SANDBOX_CAPS_ALL)
		return;
	if (mask == 0) {
		buf_str(out, "capabilities: none, even for a job of root\n");
	} else if (mask == CAPS_STANDARD) {
		buf_str(out, "capabilities: a job of root has no ");
		sandbox_profile_capability_names(~mask & SANDBOX_CAPS_ALL, out);
		buf_char(out, '\n');
	} else {
		buf_str(out, "capabilities: a job of root has only ");
		sandbox_profile_capability_names(mask, out);
		buf_char(out, '\n');
	}
}

void sandbox_profile_words(const struct sandbox *s, struct buf *out)
{
	size_t from = out->len;

	for (int i = 0; i < SANDBOX_PART_MAX; i++) {
		const struct choice *c = &parts[i].choices[s->part[i]];

		if (c->sentence)
			buf_printf(out, "%s: %s\n", parts[i].key, c->sentence);
	}
	capabilities_words(s->capabilities, out);
	if (s->read_write.n) {
		buf_str(out, "read-write:");
		for (size_t i = 0; i < s->read_write.n; i++)
			buf_printf(out, "%s %s", i ? "," : "", s->read_write.v[i]);
		buf_char(out, '\n');
	}
	if (out->len == from)
		buf_str(out, "no restrictions: the job runs as it would under cron\n");
}
