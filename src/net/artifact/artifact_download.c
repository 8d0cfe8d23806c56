/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads an artifact with libcurl, or copies an open file. */
#include "net/artifact/artifact_download.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "net/aws/aws_credentials.h"
#include "net/aws/s3_sign.h"
#include "net/opened_file.h"
#include "net/unpack/quota.h"
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define REDIRECTS 5
#define CONNECT_TIMEOUT 15L     /* seconds */
/* bytes per second; a download that is slower for SLOW_TIME seconds is aborted */
#define SLOW_BYTES 100L
#define SLOW_TIME 60L
#define OPEN_TIMEOUT_MS 20000
#define CHUNK (64 << 10)

struct fetch {
	const struct artifact_source *s;
	int fd;
	struct sha256 hash;
	int64_t got;
	int error;                 /* errno of write() */
	struct err why;            /* why the quota was refused */
	char text[CURL_ERROR_SIZE];
};

static bool data_write(struct fetch *f, const void *data, size_t len)
{
	f->got += (int64_t)len;
	if (f->got > f->s->limit)
		return false;
	if (!quota_take(f->s->quota, (int64_t)len, &f->why))
		return false;
	sha256_add(&f->hash, data, len);
	f->error = -io_write_all(f->fd, data, len);
	return f->error == 0;
}

/* The reason why data_write() returned false. */
static bool data_refused(const struct fetch *f, struct err *e)
{
	if (f->got > f->s->limit)
		return err_set(e, ERR_TOO_LARGE,
			"it has more than %lld bytes (see artifact-limit in jobschedd.conf(5))",
			(long long)f->s->limit);
	if (f->why.kind != ERR_NONE) {
		*e = f->why;
		return false;
	}
	return err_errno(e, f->error, "could not write it to the cache");
}

/* ---- local files ---- */

/* Waits for the packet of the spawner's child. Returns a positive errno, or 0 and the file. */
static int local_file_receive(int from, int64_t timeout_ms, int *ret_fd)
{
	struct pollfd p = {.fd = from, .events = POLLIN};

	return poll(&p, 1, (int)timeout_ms) == 1 ? opened_file_receive(from, ret_fd) : EIO;
}

static bool local_file_refused(const char *path, int error, struct err *e)
{
	if (error == EINVAL || error == ELOOP)
		return err_set(e, ERR_INVALID,
			"'%s' is not a regular file of an ordinary file system", path);
	if (error == EIO)
		return err_set(e, ERR_BUSY,
			"the process that opens '%s' as the owner of the job did not answer", path);
	return err_errno(e, error, "'%s' cannot be opened by the owner of the job", path);
}

static bool local_file_copy(struct fetch *f, struct err *e)
{
	const char *path = f->s->url + strlen("file:");
	AUTO_TEXT chunk = xcalloc(1, CHUNK);
	AUTO_FD fd = -1;
	ssize_t n;
	int error;

	if (text_starts(path, "///"))
		path += 2;
	error = local_file_receive(f->s->file_socket, OPEN_TIMEOUT_MS, &fd);
	if (error)
		return local_file_refused(path, error, e);
	while ((n = read(fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, errno, "could not read '%s'", path);
		if (!data_write(f, chunk, (size_t)n))
			return data_refused(f, e);
	}
	return true;
}

/* ---- the network ---- */

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
	return data_write(arg, data, size * n) ? size * n : 0;
}

static bool curl_set_options(CURL *c, struct fetch *f)
{
	const char *url = f->s->s3 ? f->s->s3->url : f->s->url;
	bool safe = text_starts(url, "https:");

	return curl_easy_setopt(c, CURLOPT_URL, url) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, safe ? "https" : "http,https") ==
		CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, f->s->s3 ? 0L : 1L) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)REDIRECTS) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(f->s->timeout / USEC_MSEC)) ==
		CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, SLOW_TIME) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_USERAGENT, "jobsched/" PACKAGE_VERSION) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEDATA, f) == CURLE_OK &&
#if LIBCURL_VERSION_NUM >= 0x075700
		curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
#endif
		curl_easy_setopt(c, CURLOPT_ERRORBUFFER, f->text) == CURLE_OK;
}

/* Storage redirects to another region; the signature would not be valid there. */
static bool curl_set_storage(CURL *c, const struct artifact_s3 *s3, struct curl_slist **headers)
{
	const struct aws_keys keys = {.id = (char *)s3->key_id, .secret = (char *)s3->key_secret,
		.token = *s3->key_token ? (char *)s3->key_token : NULL};

	return s3_sign(c, &keys, s3->region, S3_SIGN_EMPTY, headers);
}

static bool network_failed(CURLcode result, long status)
{
	static const CURLcode codes[] = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
		CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT, CURLE_RECV_ERROR, CURLE_SEND_ERROR,
		CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE};

	for (size_t i = 0; i < ELEMENTS(codes); i++)
		if (codes[i] == result)
			return true;
	return result == CURLE_HTTP_RETURNED_ERROR &&
		(status >= 500 || status == 429 || status == 408);
}

/* ERR_UNREACHABLE: the network or the server failed; a retry may succeed. */
static bool download_once(struct fetch *f, struct err *e)
{
	CURL *c = curl_easy_init();
	struct curl_slist *headers = NULL;
	bool set = c && curl_set_options(c, f) && (!f->s->s3 || curl_set_storage(c, f->s->s3, &headers));
	CURLcode result = set ? curl_easy_perform(c) : CURLE_FAILED_INIT;
	long status = 0;

	if (c)
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	curl_slist_free_all(headers);
	if (result == CURLE_OK && f->s->s3 && status != 200)
		return err_set(e, ERR_INVALID, "the storage answered %ld; check s3-endpoint and s3-region", status);
	if (result == CURLE_OK)
		return true;
	if (result == CURLE_WRITE_ERROR)
		return data_refused(f, e);
	return err_set(e, network_failed(result, status) ? ERR_UNREACHABLE : ERR_INVALID, "%s",
		f->text[0] ? f->text : curl_easy_strerror(result));
}

static bool start_again(struct fetch *f, struct err *e)
{
	f->got = f->s->quota->used = 0;
	f->text[0] = '\0';
	sha256_init(&f->hash);
	if (ftruncate(f->fd, 0) < 0 || lseek(f->fd, 0, SEEK_SET) < 0)
		return err_errno(e, errno, "could not write it to the cache");
	return true;
}

static bool download(struct fetch *f, struct err *e)
{
	for (int try = 1;; try++) {
		*e = (struct err){};
		if (!start_again(f, e))
			return false;
		if (download_once(f, e))
			return true;
		if (e->kind != ERR_UNREACHABLE || try == ARTIFACT_DOWNLOAD_TRIES)
			return false;
		nanosleep(&(struct timespec){.tv_sec = try == 1 ? 1 : 4}, NULL);
	}
}

bool artifact_download(const struct artifact_source *s, int fd, struct err *e)
{
	struct fetch f = {.s = s, .fd = fd};
	unsigned char sum[SHA256_LEN];
	char hex[SHA256_HEX];
	int shown = (int)strcspn(s->url, "?#");
	struct err why = {};

	sha256_init(&f.hash);
	if (!(text_starts(s->url, "file:") ? local_file_copy(&f, &why) : download(&f, &why)))
		return err_set(e, why.kind, "could not fetch the artifact '%.*s': %s",
			shown > 150 ? 150 : shown, s->url, why.msg);
	sha256_end(&f.hash, sum);
	if (strcmp(sha256_hex(sum, hex), s->sha256) != 0)
		return err_set(e, ERR_INVALID,
			"the artifact '%.*s' has the SHA-256 %s, not the one of the job",
			shown > 150 ? 150 : shown, s->url, hex);
	return true;
}

bool artifact_download_verify(int fd, const char *sha256, struct err *e)
{
	AUTO_TEXT chunk = xcalloc(1, CHUNK);
	unsigned char sum[SHA256_LEN];
	char hex[SHA256_HEX];
	struct sha256 hash;
	int64_t at = 0;
	ssize_t n;

	sha256_init(&hash);
	while ((n = pread(fd, chunk, CHUNK, at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, errno, "could not read the artifact cache");
		sha256_add(&hash, chunk, (size_t)n);
		at += n;
	}
	sha256_end(&hash, sum);
	return strcmp(sha256_hex(sum, hex), sha256) == 0 ||
		err_set(e, ERR_CONFLICT,
			"the cached artifact was altered: it has the SHA-256 %s now", hex);
}
