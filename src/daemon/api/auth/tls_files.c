/* SPDX-License-Identifier: Apache-2.0 */
/* Reads certificate files and checks that they belong together. */
#include "daemon/api/auth/tls_files.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (1 << 20)

enum { CERTIFICATE, KEY, CLIENT_CA, FILES };
static const char *const keys[FILES] = {"tls-certificate", "tls-key", "tls-client-ca"};

struct tls_files {
	char *path[FILES]; /* owned; NULL: none */
	char *text[FILES]; /* owned */
	struct stat seen[FILES];
};

void tls_files_free(struct tls_files *t)
{
	if (!t)
		return;
	for (int i = 0; i < FILES; i++) {
		if (t->text[i])
			explicit_bzero(t->text[i], strlen(t->text[i]));
		free(t->text[i]);
		free(t->path[i]);
	}
	free(t);
}

static bool check_pair(char *const text[FILES], struct err *e)
{
	gnutls_certificate_credentials_t c = NULL;
	gnutls_datum_t cert = {(unsigned char *)text[CERTIFICATE], (unsigned)strlen(text[CERTIFICATE])};
	gnutls_datum_t key = {(unsigned char *)text[KEY], (unsigned)strlen(text[KEY])};
	int r = gnutls_certificate_allocate_credentials(&c);

	if (r >= 0)
		r = gnutls_certificate_set_x509_key_mem(c, &cert, &key, GNUTLS_X509_FMT_PEM);
	if (r >= 0 && text[CLIENT_CA]) {
		gnutls_datum_t ca = {(unsigned char *)text[CLIENT_CA],
			(unsigned)strlen(text[CLIENT_CA])};

		r = gnutls_certificate_set_x509_trust_mem(c, &ca, GNUTLS_X509_FMT_PEM);
		if (r == 0)
			r = GNUTLS_E_NO_CERTIFICATE_FOUND;
	}
	if (c)
		gnutls_certificate_free_credentials(c);
	return r >= 0 || err_set(e, ERR_INVALID,
				 "the TLS certificate, key and client CA cannot be used: %s",
				 gnutls_strerror(r));
}

static bool read_files(struct tls_files *t, struct err *e)
{
	char *text[FILES] = {};
	bool ok = true;

	for (int i = 0; i < FILES && ok; i++) {
		AUTO_DONE(buf) b = {};
		int r = t->path[i] ? io_read_file(t->path[i], &b, FILE_MAX_BYTES) : 0;

		if (r < 0)
			ok = err_set(e, ERR_INVALID, "could not read '%s' ('%s'): %s", t->path[i],
				keys[i], strerror(-r));
		else if (t->path[i])
			text[i] = buf_steal(&b);
	}
	ok = ok && check_pair(text, e);
	for (int i = 0; i < FILES; i++) {
		char *drop = ok ? t->text[i] : text[i];

		if (drop)
			explicit_bzero(drop, strlen(drop));
		free(drop);
		if (ok)
			t->text[i] = text[i];
	}
	return ok;
}

static bool stamp_files(struct tls_files *t)
{
	bool changed = false;

	for (int i = 0; i < FILES; i++) {
		struct stat now = {};
		const struct stat *then = &t->seen[i];

		if (!t->path[i] || stat(t->path[i], &now) < 0)
			continue;
		changed |= now.st_ino != then->st_ino || now.st_dev != then->st_dev ||
			   now.st_size != then->st_size ||
			   now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
			   now.st_mtim.tv_nsec != then->st_mtim.tv_nsec;
		t->seen[i] = now;
	}
	return changed;
}

bool tls_files_new(const char *certificate, const char *key, const char *client_ca,
	struct tls_files **ret, struct err *e)
{
	AUTO(tls_files) *t = xcalloc(1, sizeof(*t));

	if (!certificate || !key)
		return err_set(e, ERR_INVALID, "'%s' is set without '%s'; TLS needs both",
			keys[certificate ? CERTIFICATE : key ? KEY : CLIENT_CA],
			keys[certificate ? KEY : CERTIFICATE]);
	t->path[CERTIFICATE] = xstrdup(certificate);
	t->path[KEY] = xstrdup(key);
	t->path[CLIENT_CA] = xstrdup(client_ca);
	stamp_files(t);
	if (!read_files(t, e))
		return false;
	*ret = STEAL(t);
	return true;
}

bool tls_files_refresh(struct tls_files *t)
{
	struct err e = {};

	if (!stamp_files(t))
		return false;
	if (read_files(t, &e)) {
		log_info("the TLS certificate '%s' was read again", t->path[CERTIFICATE]);
		return true;
	}
	log_warning("the previous TLS certificate stays in use: %s", e.msg);
	return false;
}

bool tls_files_peer_verified(void *session)
{
	unsigned status = 0;

	return session && gnutls_certificate_verify_peers2(session, &status) == 0 && status == 0;
}

const char *tls_files_certificate(const struct tls_files *t)
{
	return t->text[CERTIFICATE];
}

const char *tls_files_key(const struct tls_files *t)
{
	return t->text[KEY];
}

const char *tls_files_client_ca(const struct tls_files *t)
{
	return t->text[CLIENT_CA];
}
