/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching an artifact: libcurl for what is far away, a plain copy for what is here. */
#include "daemon/artifact_fetch.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define REDIRECTS 5
#define CONNECT_TIMEOUT 15L     /* seconds */
#define SLOW_BYTES 100L         /* per second, for so many seconds: given up */
#define SLOW_TIME 60L
#define CHUNK (64 << 10)

struct fetch {
	const struct artifact_source *s;
	int fd;
	struct sha256 hash;
	int64_t got;
	int error;                 /* errno of our own writing */
	char text[CURL_ERROR_SIZE];
};

static bool take(struct fetch *f, const void *data, size_t len)
{
	f->got += (int64_t)len;
	if (f->got > f->s->limit)
		return false;
	sha256_add(&f->hash, data, len);
	f->error = -io_write_all(f->fd, data, len);
	return f->error == 0;
}

/* Why take() would not go on. */
static bool refuse(const struct fetch *f, struct err *e)
{
	if (f->got > f->s->limit)
		return err_set(e, ERR_TOO_LARGE, "it has more than %lld bytes (see artifact-limit in jobschedd.conf(5))",
			(long long)f->s->limit);
	return err_errno(e, f->error, "could not write it to the cache");
}

/* ---- files ---- */

/* Everybody may look it up and read it: so we show nobody what only we may see. */
static bool readable_by_all(int fd, const struct stat *st)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (!(st->st_mode & S_IROTH) || n <= 0 || path[0] != '/')
		return false;
	for (path[n] = '\0'; path[1];) {
		struct stat dir;
		char *slash = strrchr(path, '/');

		slash[slash == path] = '\0';
		if (lstat(path, &dir) < 0 || !S_ISDIR(dir.st_mode) || !(dir.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

static bool copy_file(struct fetch *f, struct err *e)
{
	const char *path = f->s->url + strlen("file:");
	AUTO_FD fd = -1;
	AUTO_TEXT chunk = xcalloc(1, CHUNK);
	struct stat st;
	ssize_t n;

	if (text_starts(path, "///"))
		path += 2;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, errno, "'%s' cannot be opened by the scheduler", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is not a regular file", path);
	if (f->s->public_only && !readable_by_all(fd, &st))
		return err_set(e, ERR_DENIED, "'%s' must be readable by everybody (chmod o+r, and o+x on its directories), "
					      "because the scheduler reads it",
			path);
	while ((n = read(fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, errno, "could not read '%s'", path);
		if (atomic_load(f->s->stop))
			return err_set(e, ERR_BUSY, "the scheduler is being stopped");
		if (!take(f, chunk, (size_t)n))
			return refuse(f, e);
	}
	return true;
}

/* ---- the network ---- */

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
	return take(arg, data, size * n) ? size * n : 0;
}

static int on_progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up)
{
	const struct fetch *f = arg;

	(void)total;
	(void)now;
	(void)up_total;
	(void)up;
	return atomic_load(f->s->stop) ? 1 : 0;
}

static bool set_up(CURL *c, struct fetch *f)
{
	bool safe = text_starts(f->s->url, "https:");

	return curl_easy_setopt(c, CURLOPT_URL, f->s->url) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, safe ? "https" : "http,https") == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)REDIRECTS) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(f->s->timeout / USEC_MSEC)) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, SLOW_TIME) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_USERAGENT, "jobsched/" PACKAGE_VERSION) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEDATA, f) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_XFERINFODATA, f) == CURLE_OK &&
#if LIBCURL_VERSION_NUM >= 0x075700
	       curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
#endif
	       curl_easy_setopt(c, CURLOPT_ERRORBUFFER, f->text) == CURLE_OK;
}

static bool network_to_blame(CURLcode result, long status)
{
	static const CURLcode codes[] = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
		CURLE_OPERATION_TIMEDOUT, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE};

	for (size_t i = 0; i < ELEMENTS(codes); i++)
		if (codes[i] == result)
			return true;
	return result == CURLE_HTTP_RETURNED_ERROR && (status >= 500 || status == 429 || status == 408);
}

/* A service that was given no network sees its loopback only. */
static bool network_here(void)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return true;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		found |= a->ifa_addr && !(a->ifa_flags & IFF_LOOPBACK) && a->ifa_flags & IFF_UP;
	freeifaddrs(all);
	return found;
}

/* ERR_BUSY: the network, or the server's moment; trying again may work. */
static bool download_once(struct fetch *f, struct err *e)
{
	CURL *c = curl_easy_init();
	CURLcode result = c && set_up(c, f) ? curl_easy_perform(c) : CURLE_FAILED_INIT;
	long status = 0;

	if (c)
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	if (result == CURLE_OK)
		return true;
	if (result == CURLE_WRITE_ERROR)
		return refuse(f, e);
	if (atomic_load(f->s->stop))
		return err_set(e, ERR_BUSY, "the scheduler is being stopped");
	return err_set(e, network_to_blame(result, status) ? ERR_BUSY : ERR_INVALID, "%s%s",
		f->text[0] ? f->text : curl_easy_strerror(result),
		network_here() ? "" : "; this service has no network, network.conf gives it one: see jobschedd(8)");
}

/* 1 s, then 4 s, unless somebody wants to leave. */
static void pause_before(int try, const atomic_bool *stop)
{
	for (int i = 0; i < 10 * (try == 1 ? 1 : 4) && !atomic_load(stop); i++)
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

static bool start_again(struct fetch *f, struct err *e)
{
	f->got = 0;
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
		if (e->kind != ERR_BUSY || try == ARTIFACT_TRIES || atomic_load(f->s->stop))
			return false;
		pause_before(try, f->s->stop);
	}
}

bool artifact_fetch(const struct artifact_source *s, int fd, struct err *e)
{
	struct fetch f = {.s = s, .fd = fd};
	unsigned char sum[SHA256_LEN];
	char hex[SHA256_HEX];
	int shown = (int)strcspn(s->url, "?#");
	struct err why = {};

	sha256_init(&f.hash);
	if (!(text_starts(s->url, "file:") ? copy_file(&f, &why) : download(&f, &why)))
		return err_set(e, why.kind, "could not fetch the artifact '%.*s': %s", shown > 150 ? 150 : shown, s->url, why.msg);
	sha256_end(&f.hash, sum);
	if (strcmp(sha256_hex(sum, hex), s->sha256) != 0)
		return err_set(e, ERR_INVALID, "the artifact '%.*s' has the SHA-256 %s, not the one of the job",
			shown > 150 ? 150 : shown, s->url, hex);
	return true;
}
