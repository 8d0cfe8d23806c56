/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a mail message: header values cannot break their line, the body is quoted-printable, lines end with LF. */
#include "daemon/notify/mail.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <string.h>
#include <time.h>

#define PLAIN_SUBJECT 200 /* bytes; longer subjects are folded, which needs encoded words */
#define WORD_BYTES 45     /* of one encoded word: 60 characters of base64 */
#define LINE_MAX_QP 75

static bool header_is_plain(const char *s)
{
	for (const char *p = s; *p; p++)
		if (*p < ' ' || *p > '~')
			return false;
	return strlen(s) <= PLAIN_SUBJECT && !strstr(s, "=?");
}

/* Length of the next encoded word; it does not split a UTF-8 character. */
static size_t word_len(const char *s)
{
	size_t n = strnlen(s, WORD_BYTES);

	while (n > 0 && s[n] && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n ? n : strnlen(s, WORD_BYTES);
}

/* Encoded words, RFC 2047. */
static void put_encoded(struct buf *out, const char *s)
{
	for (size_t n; *s; s += n) {
		n = word_len(s);
		buf_str(out, "=?UTF-8?B?");
		buf_base64(out, s, n);
		buf_str(out, s[n] ? "?=\n " : "?=");
	}
}

static void put_atom(struct buf *out, const char *s)
{
	for (; s && *s; s++)
		buf_char(out, strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *s) ? *s : '_');
}

static void put_date(struct buf *out, usec_t date)
{
	static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t t = (time_t)(date / USEC_SEC);
	struct tm tm;

	gmtime_r(&t, &tm);
	buf_printf(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\n", days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
		tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* Quoted-printable, RFC 2045: lines have at most 76 characters, blanks at their end are encoded. */
static void put_quoted(struct buf *out, const char *s)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t line = 0;

	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		bool blank_at_end = c == ' ' && (s[1] == '\n' || !s[1]);
		bool bare = c >= ' ' && c <= '~' && c != '=' && !blank_at_end && !(line == 0 && (c == '.' || c == 'F'));

		if (c == '\n') {
			buf_str(out, "\n");
			line = 0;
			continue;
		}
		if (line + (bare ? 1 : 3) > LINE_MAX_QP) {
			buf_str(out, "=\n");
			line = 0;
		}
		if (bare) {
			buf_char(out, (char)c);
			line++;
		} else {
			buf_printf(out, "=%c%c", digits[c >> 4], digits[c & 15]);
			line += 3;
		}
	}
	if (line > 0)
		buf_str(out, "\n");
}

void mail_write(const struct mail *m, struct buf *out)
{
	buf_str(out, "From: jobsched <");
	put_atom(out, m->from_user);
	buf_char(out, '@');
	put_atom(out, m->from_host);
	buf_printf(out, ">\nTo: %s\nSubject: ", m->to);
	if (header_is_plain(m->subject))
		buf_str(out, m->subject);
	else
		put_encoded(out, m->subject);
	buf_str(out, "\n");
	put_date(out, m->date);
	buf_str(out, "Message-ID: <");
	put_atom(out, m->id);
	buf_char(out, '@');
	put_atom(out, m->from_host);
	buf_str(out, ">\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"
		"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n");
	put_quoted(out, m->text);
}
