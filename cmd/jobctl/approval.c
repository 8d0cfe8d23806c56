/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for approval of what a job starts, after showing it field by field. */
#include "jobctl/approval.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/start/exec_spec.h"
#include "jobctl/ctl.h"
#include "jobctl/spec/shell.h"
#include <inttypes.h>
#include <string.h>

/* The command is never cut: the user would approve words without seeing them. */
static void show_command(const struct strv *argv)
{
	AUTO_DONE(buf) line = {};

	for (size_t i = 0; i < argv->n; i++) {
		if (i)
			buf_char(&line, ' ');
		shell_quote(&line, argv->v[i]);
	}
	ctl_say("  command: %s", line.data);
}

static void show_field(const struct exec_spec_field *f, const void *at)
{
	const struct strv *list = at;
	const struct blob *blob = at;
	char hex[SHA256_HEX];

	switch (f->type) {
	case EXEC_SPEC_INT:
		if (*(const int64_t *)at != f->preset)
			ctl_say(strcmp(f->name, "umask") == 0 ? "  %s: 0%" PRIo64
							      : "  %s: %" PRId64,
				f->name, *(const int64_t *)at);
		return;
	case EXEC_SPEC_TEXT:
		if (*(char *const *)at)
			ctl_say("  %s: %s", f->name, *(char *const *)at);
		return;
	case EXEC_SPEC_LIST:
		for (size_t i = 0; i < list->n; i++)
			ctl_say("  %s: %s", f->name, list->v[i]);
		return;
	default:
		if (blob->data && blob->len == SHA256_LEN)
			ctl_say("  stdin: SHA-256 %s",
				sha256_hex((const unsigned char *)blob->data, hex));
	}
}

static void show_exec_spec(const struct exec_spec *o)
{
	static const char *const apart[] = {"uid", "owner", "argv", "name", "job"};

	ctl_say("to be approved: %s%s%sto run as %s (uid %" PRId64 "):",
		o->name ? "job '" : "a job without a name, ", o->name ? o->name : "",
		o->name ? "', " : "", o->owner, o->uid);
	show_command(&o->argv);
	for (size_t i = 0; i < exec_spec_fields_count; i++) {
		const struct exec_spec_field *f = &exec_spec_fields[i];
		bool shown = false;

		for (size_t k = 0; k < ELEMENTS(apart); k++)
			shown = shown || strcmp(f->name, apart[k]) == 0;
		if (!shown)
			show_field(f, (const char *)o + f->offset);
	}
}

bool approval_confirm(const struct ctl *c, const struct exec_spec *o, struct err *e)
{
	show_exec_spec(o);
	if (c->yes)
		return true;
	if (!ctl_can_ask())
		return err_set(e, ERR_DENIED,
			"not approved: part of this comes from the daemon and was not typed here, and there is no "
			"terminal to ask on; if it is correct, repeat the command with --yes");
	if (ctl_ask("Approve it?"))
		return true;
	return err_set(e, ERR_DENIED, "not approved; nothing was changed");
}
