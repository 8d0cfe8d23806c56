/* SPDX-License-Identifier: Apache-2.0 */
/* Calls PAM without a conversation. */
#include "exec/worker/pam.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/start/start_failure.h"

#ifdef HAVE_PAM
#include <dlfcn.h>
#include <security/pam_appl.h>
#include <string.h>

/* Questions fail, because there is no user to answer them. Messages need no answer. */
static int conversation_refuse(
	int n, const struct pam_message **messages, struct pam_response **answers, void *arg)
{
	(void)arg;
	for (int i = 0; i < n; i++)
		if (messages[i]->msg_style != PAM_TEXT_INFO &&
			messages[i]->msg_style != PAM_ERROR_MSG)
			return PAM_CONV_ERR;
	*answers = xcalloc((size_t)n, sizeof(**answers)); /* freed by PAM */
	return PAM_SUCCESS;
}

/* Loaded at run time in these processes, so that the spawner itself is not linked with libpam. */
struct libpam {
	__typeof__(pam_start) *start;
	__typeof__(pam_set_item) *set_item;
	__typeof__(pam_acct_mgmt) *acct_mgmt;
	__typeof__(pam_setcred) *setcred;
	__typeof__(pam_open_session) *open_session;
	__typeof__(pam_close_session) *close_session;
	__typeof__(pam_getenvlist) *getenvlist;
	__typeof__(pam_strerror) *strerror;
	__typeof__(pam_end) *end;
};

static bool libpam_load(struct libpam *p)
{
	const struct {
		void **to;
		const char *name;
	} calls[] = {{(void **)&p->start, "pam_start"}, {(void **)&p->set_item, "pam_set_item"},
		{(void **)&p->acct_mgmt, "pam_acct_mgmt"}, {(void **)&p->setcred, "pam_setcred"},
		{(void **)&p->open_session, "pam_open_session"},
		{(void **)&p->close_session, "pam_close_session"},
		{(void **)&p->getenvlist, "pam_getenvlist"},
		{(void **)&p->strerror, "pam_strerror"}, {(void **)&p->end, "pam_end"}};
	void *lib = dlopen("libpam.so.0", RTLD_NOW);

	for (size_t i = 0; lib && i < ELEMENTS(calls); i++) {
		*calls[i].to = dlsym(lib, calls[i].name);
		if (!*calls[i].to)
			return false;
	}
	return lib;
}

bool pam_available(void)
{
	return true;
}

bool pam_account_check(const char *name, enum start_failure *why, struct err *e)
{
	const struct pam_conv conversation = {.conv = conversation_refuse};
	pam_handle_t *h = NULL;
	struct libpam p = {};
	int r;

	*why = START_ACCOUNT_DENIED;
	if (!libpam_load(&p))
		return err_set(e, ERR_DENIED,
			"cannot check the account of '%s': libpam.so.0 is missing", name);
	r = p.start(PAM_SERVICE_NAME, name, &conversation, &h);
	if (r == PAM_SUCCESS)
		r = p.set_item(h, PAM_TTY, "jobsched");
	if (r == PAM_SUCCESS)
		r = p.acct_mgmt(h, PAM_SILENT);
	if (r != PAM_SUCCESS)
		err_set(e, ERR_DENIED, "PAM denies the account of '%s': %s", name,
			p.strerror(h, r));
	if (h)
		p.end(h, r);
	return r == PAM_SUCCESS;
}

struct pam_session {
	struct libpam pam;
	pam_handle_t *h;
};

static void pam_environment_add(const struct pam_session *s, struct strv *ret)
{
	char **list = s->pam.getenvlist(s->h);

	for (size_t i = 0; list && list[i]; i++) {
		if (strchr(list[i], '='))
			strv_take(ret, xstrdup(list[i]));
		free(list[i]);
	}
	free(list);
}

bool pam_session_open(
	const char *name, struct pam_session **ret, struct strv *ret_env, struct err *e)
{
	static const struct pam_conv conversation = {.conv = conversation_refuse};
	struct pam_session *s = xcalloc(1, sizeof(*s));
	const char *what = "denies credentials to";
	bool credentials = false;
	int r;

	if (!libpam_load(&s->pam)) {
		free(s);
		return err_set(e, ERR_DENIED,
			"cannot open a session for '%s': libpam.so.0 is missing", name);
	}
	r = s->pam.start(PAM_SERVICE_NAME, name, &conversation, &s->h);
	if (r == PAM_SUCCESS)
		r = s->pam.set_item(s->h, PAM_TTY, "jobsched");
	if (r == PAM_SUCCESS) {
		r = s->pam.setcred(s->h, PAM_ESTABLISH_CRED | PAM_SILENT);
		credentials = r == PAM_SUCCESS;
	}
	if (credentials) {
		what = "denies a session to";
		r = s->pam.open_session(s->h, PAM_SILENT);
	}
	if (r == PAM_SUCCESS) {
		pam_environment_add(s, ret_env);
		*ret = s;
		return true;
	}
	err_set(e, ERR_DENIED, "PAM %s '%s': %s", what, name, s->pam.strerror(s->h, r));
	if (credentials)
		s->pam.setcred(s->h, PAM_DELETE_CRED | PAM_SILENT);
	if (s->h)
		s->pam.end(s->h, r);
	free(s);
	return false;
}

bool pam_session_close(struct pam_session *s, struct err *e)
{
	int r = s->pam.close_session(s->h, PAM_SILENT);
	int also = s->pam.setcred(s->h, PAM_DELETE_CRED | PAM_SILENT);

	if (r == PAM_SUCCESS)
		r = also;
	if (r != PAM_SUCCESS)
		err_set(e, ERR_DENIED, "%s", s->pam.strerror(s->h, r));
	s->pam.end(s->h, r);
	free(s);
	return r == PAM_SUCCESS;
}
#else
bool pam_available(void)
{
	return false;
}

bool pam_account_check(const char *name, enum start_failure *why, struct err *e)
{
	*why = START_ACCOUNT_DENIED;
	return err_set(e, ERR_DENIED, "cannot check the account of '%s': built without PAM", name);
}

bool pam_session_open(
	const char *name, struct pam_session **ret, struct strv *ret_env, struct err *e)
{
	(void)ret;
	(void)ret_env;
	return err_set(e, ERR_DENIED, "cannot open a session for '%s': built without PAM", name);
}

bool pam_session_close(struct pam_session *s, struct err *e)
{
	(void)s;
	(void)e;
	return true;
}
#endif
