/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of this node: machine ID, boot ID, labels. */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/policy.h"
#include "daemon/loop/config.h"
#include "daemon/engine_private.h"
#include <string.h>

char *engine_machine(const struct config *c)
{
	const char *path = c->machine_id_file ? c->machine_id_file : "/etc/machine-id";
	AUTO_DONE(buf) id = {};

	if (io_read_file(path, &id, 256) < 0 || strcspn(id.data ? id.data : "", "\n") == 0) {
		log_warning(
			"'%s' has no machine ID: a store copied from another machine cannot be detected",
			path);
		return NULL;
	}
	return xstrndup(id.data, strcspn(id.data, "\n"));
}

/* Leases in a SQLite file use the boottime clock, which is valid within one boot. */
char *engine_boot_id(void)
{
	AUTO_DONE(buf) id = {};

	return io_read_file("/proc/sys/kernel/random/boot_id", &id, 64) < 0
		       ? NULL
		       : xstrndup(id.data, strcspn(id.data, "\n"));
}

/* Converts zone=a,gpu=yes into lines, so that SQL can search for a whole label. */
bool engine_labels(const char *labels, char **ret, struct err *e)
{
	AUTO_DONE(buf) lines = {};
	const char *at = labels;

	while (at && *at) {
		size_t len = strcspn(at, ",");
		AUTO_TEXT label = xstrndup(at, len);

		if (!policy_node_label_check(label, e))
			return err_wrap(e, "'node-labels'");
		buf_printf(&lines, "%s%s\n", lines.len ? "" : "\n", label);
		at += len + (at[len] == ',');
	}
	*ret = lines.len ? buf_steal(&lines) : NULL;
	return true;
}
