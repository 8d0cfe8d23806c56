/* SPDX-License-Identifier: Apache-2.0 */
/* Reads load figures from /proc; a missing file, as in some containers, gives an unknown figure. */
#include "daemon/schedule/machine_load.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <sched.h>

#define READ_INTERVAL USEC_SEC /* the kernel updates pressure figures every two seconds */
#define FILE_MAX 512

static const struct {
	const char *file;
	int64_t (*figure_in)(const char *text);
} sources[MACHINE_FIGURE_MAX] = {
	[MACHINE_LOAD] = {"loadavg", machine_conditions_parse_load},
	[MACHINE_CPU] = {"pressure/cpu", machine_conditions_parse_pressure},
	[MACHINE_MEMORY] = {"pressure/memory", machine_conditions_parse_pressure},
	[MACHINE_IO] = {"pressure/io", machine_conditions_parse_pressure},
};

static int64_t read_figure(const char *root, int figure)
{
	AUTO_TEXT path = xprintf("%s/%s", root ? root : "/proc", sources[figure].file);
	AUTO_DONE(buf) text = {};

	if (io_read_file(path, &text, FILE_MAX) < 0 || text.len == 0)
		return -1;
	return sources[figure].figure_in(text.data);
}

const struct machine_figures *machine_load_read(struct machine_load *m, usec_t boottime)
{
	if (m->read_at && boottime - m->read_at < READ_INTERVAL)
		return &m->now;
	for (int i = 0; i < MACHINE_FIGURE_MAX; i++)
		m->now.thousandths[i] = read_figure(m->root, i);
	m->read_at = boottime;
	return &m->now;
}

int64_t machine_load_cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n > 0 ? n : 1;
}
