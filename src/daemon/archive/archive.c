/* SPDX-License-Identifier: Apache-2.0 */
/* Writes history to compressed files of JSON lines. */
#include "daemon/archive/archive.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/lists.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* tells zlib to write a gzip header */

static void archive_add_line(struct buf *out, const char *what, json_t *value /* moved */)
{
	json_t *line = json_pack("{s:o}", what, value);

	json_value_write(line, out);
	buf_char(out, '\n');
	json_decref(line);
}

void archive_describe_run(const struct run *run, const struct attempt_list *attempts, const struct archive_output *outputs,
	struct buf *out)
{
	json_t *list = json_array(), *o = row_json_run(run);

	for (size_t i = 0; i < attempts->n; i++) {
		json_t *attempt = row_json_attempt(attempts->v[i]);

		if (outputs) {
			json_object_set_new(attempt, "output_archived", json_boolean(outputs[i].archived));
			json_object_set_new(attempt, "output_end", json_value_text(outputs[i].end));
		}
		json_array_append_new(list, attempt);
	}
	json_object_set_new(o, "owner_number", json_integer(run->uid));
	json_object_set_new(o, "attempts", list);
	archive_add_line(out, "run", o);
}

bool archive_describe_job(const struct job *job, struct buf *out)
{
	struct err e = {};
	json_t *o = row_json_job(job, &e);

	if (o)
		archive_add_line(out, "job", o);
	return o != NULL;
}

char *archive_name(usec_t now)
{
	time_t seconds = (time_t)(now / USEC_SEC);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
	return xstrdup(text);
}

static bool compress_lines(const struct buf *lines, unsigned char **ret, size_t *ret_len,
	struct err *e)
{
	z_stream z = {};
	size_t room;
	int r;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
		    Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(e, ERR_INTERNAL, "could not set up the compression");
	room = deflateBound(&z, lines->len);
	*ret = xcalloc(1, room);
	z.next_in = (unsigned char *)lines->data;
	z.avail_in = (unsigned)lines->len;
	z.next_out = *ret;
	z.avail_out = (unsigned)room;
	r = deflate(&z, Z_FINISH);
	*ret_len = z.total_out;
	deflateEnd(&z);
	if (r == Z_STREAM_END)
		return true;
	free(STEAL(*ret));
	return err_set(e, ERR_INTERNAL, "could not compress the archive");
}

bool archive_append(const char *dir, const char *name, const struct buf *lines, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/%s.jsonl.gz", dir, name);
	unsigned char *packed = NULL;
	AUTO_FD fd = -1;
	size_t len = 0;
	off_t before;
	int r = io_mkdirs(dir, 0700);

	if (r < 0)
		return err_errno(e, -r, "could not make the archive directory '%s'", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || (before = lseek(fd, 0, SEEK_END)) < 0)
		return err_errno(e, errno, "could not open the archive '%s'", path);
	if (!compress_lines(lines, &packed, &len, e))
		return false;
	r = io_write_all(fd, packed, len);
	free(packed);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0)
		return true;
	if (ftruncate(fd, before) < 0)
		return err_errno(e, -r,
			"could not write the archive '%s', and its end is incomplete now", path);
	return err_errno(e, -r, "could not write the archive '%s'", path);
}
