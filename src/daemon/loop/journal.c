/* SPDX-License-Identifier: Apache-2.0 */
/* Writes structured entries to the journal if it reads standard error. */
#include "daemon/loop/journal.h"
#include "base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

/* systemd sets $JOURNAL_STREAM to device and inode of the stream that it has connected. */
static bool stderr_is_the_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t device, inode;
	struct stat st;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
	       fstat(2, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

struct fields {
	char text[6][1200];
	struct iovec iov[6];
	int n;
};

#define FIELD(f, ...)                                                                              \
	do {                                                                                       \
		(f)->iov[(f)->n].iov_base = (f)->text[(f)->n];                                     \
		(f)->iov[(f)->n].iov_len =                                                         \
			(size_t)snprintf((f)->text[(f)->n], sizeof((f)->text[0]), __VA_ARGS__);    \
		if ((f)->iov[(f)->n].iov_len >= sizeof((f)->text[0]))                              \
			(f)->iov[(f)->n].iov_len = sizeof((f)->text[0]) - 1;                       \
		(f)->n++;                                                                          \
	} while (0)

static void send_to_journal(enum log_level level, const struct log_about *about, const char *line)
{
	struct fields f = {};

	FIELD(&f, "MESSAGE=%s", line);
	FIELD(&f, "PRIORITY=%d", level);
	if (about && about->job)
		FIELD(&f, "JOB=%" PRId64, about->job);
	if (about && about->run)
		FIELD(&f, "RUN=%" PRId64, about->run);
	if (about && about->node)
		FIELD(&f, "NODE=%s", about->node);
	if (about && about->trace && about->trace[0])
		FIELD(&f, "TRACE_ID=%s", about->trace);
	sd_journal_sendv(f.iov, f.n);
}

void journal_open(const char *program, const char *node_name)
{
	log_open(program, LOG_LEVEL_INFO, stderr_is_the_journal() ? send_to_journal : NULL);
	log_set_node(node_name);
}
