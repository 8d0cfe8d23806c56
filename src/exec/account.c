/* SPDX-License-Identifier: Apache-2.0 */
/* Asks PAM for an account, without a password and without a conversation. */
#include "exec/account.h"
#include "base/err.h"

#ifdef HAVE_PAM
#include <dlfcn.h>
#include <security/pam_appl.h>

/* Nobody is there to answer. */
static int say_nothing(int n, const struct pam_message **messages, struct pam_response **answers, void *arg)
{
	(void)n;
	(void)messages;
	(void)answers;
	(void)arg;
	return PAM_CONV_ERR;
}

/* Loaded here, in the process that ends, so that the spawner itself is linked with the C library only. */
struct pam {
	__typeof__(pam_start) *start;
	__typeof__(pam_set_item) *set_item;
	__typeof__(pam_acct_mgmt) *acct_mgmt;
	__typeof__(pam_strerror) *strerror;
	__typeof__(pam_end) *end;
};

static bool load(struct pam *p)
{
	void *lib = dlopen("libpam.so.0", RTLD_NOW);

	if (!lib)
		return false;
	*(void **)&p->start = dlsym(lib, "pam_start");
	*(void **)&p->set_item = dlsym(lib, "pam_set_item");
	*(void **)&p->acct_mgmt = dlsym(lib, "pam_acct_mgmt");
	*(void **)&p->strerror = dlsym(lib, "pam_strerror");
	*(void **)&p->end = dlsym(lib, "pam_end");
	return p->start && p->set_item && p->acct_mgmt && p->strerror && p->end;
}

bool account_available(void)
{
	return true;
}

bool account_check(const char *name, enum start_failure *why, struct err *e)
{
	const struct pam_conv talk = {.conv = say_nothing};
	pam_handle_t *h = NULL;
	struct pam p = {};
	int r;

	*why = START_ACCOUNT_DENIED;
	if (!load(&p))
		return err_set(e, ERR_DENIED, "the account of '%s' cannot be checked: libpam.so.0 is missing", name);
	r = p.start(ACCOUNT_SERVICE, name, &talk, &h);
	if (r == PAM_SUCCESS)
		r = p.set_item(h, PAM_TTY, "jobsched");
	if (r == PAM_SUCCESS)
		r = p.acct_mgmt(h, PAM_SILENT);
	if (r != PAM_SUCCESS)
		err_set(e, ERR_DENIED, "the account of '%s' may not be used now: %s", name, p.strerror(h, r));
	if (h)
		p.end(h, r);
	return r == PAM_SUCCESS;
}
#else
bool account_available(void)
{
	return false;
}

bool account_check(const char *name, enum start_failure *why, struct err *e)
{
	*why = START_ACCOUNT_DENIED;
	return err_set(e, ERR_DENIED, "the account of '%s' cannot be checked: built without PAM", name);
}
#endif
