/* SPDX-License-Identifier: Apache-2.0 */
/* TLS by GnuTLS on a non-blocking socket. */
#include "wire/http_tls.h"
#include "base/err.h"
#include "base/text.h"
#include "wire/http_response.h"
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct http_tls {
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
};

void http_tls_free(struct http_tls *t)
{
	if (!t)
		return;
	if (t->session)
		gnutls_deinit(t->session);
	if (t->credentials)
		gnutls_certificate_free_credentials(t->credentials);
	free(t);
}

static bool load_credentials(struct http_tls *t, const struct http_tls_options *o, struct err *e)
{
	int r = gnutls_certificate_allocate_credentials(&t->credentials);

	if (r < 0)
		return err_set(e, ERR_INTERNAL, "cannot start TLS: %s", gnutls_strerror(r));
	r = o->ca_file ? gnutls_certificate_set_x509_trust_file(t->credentials, o->ca_file,
				 GNUTLS_X509_FMT_PEM)
		       : gnutls_certificate_set_x509_system_trust(t->credentials);
	if (r < 0)
		return err_set(e, ERR_INVALID, "cannot read the certificate authorities%s%s: %s",
			o->ca_file ? " in " : "", o->ca_file ? o->ca_file : "", gnutls_strerror(r));
	if (!o->certificate)
		return true;
	r = gnutls_certificate_set_x509_key_file(t->credentials, o->certificate,
		o->key ? o->key : o->certificate, GNUTLS_X509_FMT_PEM);
	return r >= 0 || err_set(e, ERR_INVALID, "cannot use the client certificate '%s': %s",
				 o->certificate, gnutls_strerror(r));
}

static bool start_session(struct http_tls *t, int fd, const char *host, struct err *e)
{
	int r = gnutls_init(&t->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);

	if (r >= 0)
		r = gnutls_set_default_priority_append(t->session, "-VERS-TLS1.1:-VERS-TLS1.0", NULL, 0);
	if (r >= 0)
		r = gnutls_credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, t->credentials);
	if (r >= 0) /* an address is not sent as a name, but is verified */
		(void)gnutls_server_name_set(t->session, GNUTLS_NAME_DNS, host, strlen(host));
	if (r < 0)
		return err_set(e, ERR_INTERNAL, "cannot start TLS: %s", gnutls_strerror(r));
	gnutls_session_set_verify_cert(t->session, host, 0);
	gnutls_transport_set_int(t->session, fd);
	return true;
}

static bool explain_handshake(struct http_tls *t, int r, const char *host, struct err *e)
{
	gnutls_datum_t words = {};
	bool known = r == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
		     gnutls_certificate_verification_status_print(
			     gnutls_session_get_verify_cert_status(t->session), GNUTLS_CRT_X509,
			     &words, 0) >= 0;

	err_set(e, ERR_UNREACHABLE, "no secure connection to '%s': %s%s", host,
		known ? (char *)words.data : gnutls_strerror(r),
		known ? " Use the name in its certificate, or --ca-file for a private authority."
		      : "; use http:// if the server has no TLS and is on this machine");
	gnutls_free(words.data);
	return false;
}

bool http_tls_open(int fd, const struct http_tls_options *o, struct http_tls **ret, struct err *e)
{
	AUTO(http_tls) *t = xcalloc(1, sizeof(*t));
	int r;

	if (!load_credentials(t, o, e) || !start_session(t, fd, o->host, e))
		return false;
	while ((r = gnutls_handshake(t->session)) < 0) {
		if (gnutls_error_is_fatal(r))
			return explain_handshake(t, r, o->host, e);
		if (r == GNUTLS_E_AGAIN &&
			!http_response_poll(fd,
				gnutls_record_get_direction(t->session) ? POLLOUT : POLLIN, o->until, e))
			return false;
	}
	*ret = STEAL(t);
	return true;
}

static ssize_t as_errno(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = n == GNUTLS_E_AGAIN ? EAGAIN : n == GNUTLS_E_INTERRUPTED ? EINTR : ECONNRESET;
	return -1;
}

ssize_t http_tls_recv(struct http_tls *t, void *out, size_t len)
{
	ssize_t n;

	do /* tickets and key updates of TLS 1.3 carry no data */
		n = gnutls_record_recv(t->session, out, len);
	while (n < 0 && n != GNUTLS_E_AGAIN && n != GNUTLS_E_INTERRUPTED &&
		!gnutls_error_is_fatal((int)n));
	return as_errno(n);
}

ssize_t http_tls_send(struct http_tls *t, const void *data, size_t len)
{
	return as_errno(gnutls_record_send(t->session, data, len));
}
