/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Approves the lines of crontabs of root. A file that belongs to root and that only root can write
 * is root's own word, so the reader signs exactly the execution specifications that follow from its
 * bytes. Tables of other users are not parsed here, and nothing of theirs is signed.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/anacrontab.h"
#include "core/crontab/crontab.h"
#include "core/crontab/table_job.h"
#include "core/start/exec_spec.h"
#include "core/start/exec_spec_build.h"
#include "exec/proto/table_list.h"
#include "exec/proto/warrant_client.h"
#include "exec/spawner/table_reader.h"
#include <pwd.h>
#include <string.h>

static bool account_exists(const char *name, void *arg)
{
	(void)arg;
	return getpwnam(name) != NULL;
}

/* The identity and the name are part of what is signed, as with 'jobctl approve'. */
static bool job_sign(const struct table_job *j, const struct table_request *r, struct table_warrant *ret)
{
	const struct passwd *pw = getpwnam(j->user);
	struct job_spec spec = j->spec; /* shares its members */
	char text[WARRANT_HEX];
	AUTO_DONE(exec_spec) o = {};
	AUTO_DONE(buf) bytes = {};

	if (!pw || !warrant_needed((enum warrant_policy)r->policy, pw->pw_uid))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->line = j->line;
	memcpy(ret->job, j->identity, WARRANT_JOB_LEN);
	spec.warrant = warrant_print(ret->job, ret->warrant, text);
	exec_spec_build(&o, &(struct exec_spec_source){.spec = &spec, .uid = pw->pw_uid, .owner = j->user});
	if (!exec_spec_encode(&o, &bytes, NULL))
		return false;
	warrant_key_sign(&r->key, &(struct warrant_subject){.kind = WARRANT_OF_ORDER, .data = bytes.data, .len = bytes.len},
		ret->warrant);
	return true;
}

static void jobs_of(const struct table_file *f, const struct table_request *r, struct crontab **ret_table,
	struct anacrontab **ret_anacron, struct table_jobs *ret)
{
	const char *data = f->content.data ? f->content.data : "";

	if (f->kind == TABLE_ANACRON) {
		anacrontab_parse(data, f->content.len, ret_anacron);
		table_jobs_build_anacron(*ret_anacron, f->path, ret);
		return;
	}
	crontab_parse(data, f->content.len, &(struct crontab_options){.mode = (enum crontab_mode)r->conf.mode,
		.system = f->kind == TABLE_SYSTEM, .user_exists = account_exists, .seed = f->path, .no_logging = true}, ret_table);
	table_jobs_build(*ret_table, f->path, f->user, ret);
}

void table_warrants_make(struct table_file *f, const struct table_request *r)
{
	AUTO_DONE(table_jobs) jobs = {};
	AUTO(anacrontab) *anacron = NULL;
	AUTO(crontab) *table = NULL;

	if (f->uid != 0 || f->problem[0] || r->policy == WARRANT_NONE)
		return;
	jobs_of(f, r, &table, &anacron, &jobs);
	f->warrants = xcalloc(jobs.n ? jobs.n : 1, sizeof(*f->warrants));
	for (size_t i = 0; i < jobs.n && f->warrants_n < TABLE_LINES_MAX; i++)
		if (job_sign(&jobs.v[i], r, &f->warrants[f->warrants_n]))
			f->warrants_n++;
}
