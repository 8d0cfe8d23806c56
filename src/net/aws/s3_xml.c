/* SPDX-License-Identifier: Apache-2.0 */
/* Finds elements in XML without namespaces, attributes of interest or nesting of the same name. */
#include "net/aws/s3_xml.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <string.h>

/* The content of the next <element>; NULL: there is none. */
static const char *element_find(const char *xml, const char *element, size_t *ret_len)
{
	size_t n = strlen(element);

	while ((xml = strchr(xml, '<'))) {
		const char *open, *close;

		xml++;
		if (strncmp(xml, element, n) != 0 || !strchr("> \t\r\n", xml[n]) || !xml[n])
			continue;
		open = strchr(xml, '>');
		if (!open)
			return NULL;
		open++;
		for (close = open; (close = strstr(close, "</")); close += 2)
			if (strncmp(close + 2, element, n) == 0 && close[2 + n] == '>')
				break;
		if (!close)
			return NULL;
		*ret_len = (size_t)(close - open);
		return open;
	}
	return NULL;
}

static void text_decode(const char *s, size_t len, struct buf *out)
{
	static const struct {
		const char *name;
		char is;
	} entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&#39;", '\''}, {"&#34;", '"'}};
	const char *end = s + len;

	while (s < end) {
		size_t i = 0;

		while (i < ELEMENTS(entities) &&
			((size_t)(end - s) < strlen(entities[i].name) ||
				strncmp(s, entities[i].name, strlen(entities[i].name)) != 0))
			i++;
		buf_char(out, i < ELEMENTS(entities) ? entities[i].is : *s);
		s += i < ELEMENTS(entities) ? strlen(entities[i].name) : 1;
	}
}

bool s3_xml_text(const char *xml, const char *element, struct buf *out)
{
	size_t len;
	const char *text = element_find(xml, element, &len);

	if (!text)
		return false;
	text_decode(text, len, out);
	return true;
}

static bool key_plain(const struct buf *key)
{
	for (size_t i = 0; i < key->len; i++)
		if ((unsigned char)key->data[i] < ' ' || key->data[i] == 0x7f)
			return false;
	return key->len > 0;
}

bool s3_xml_keys(const char *xml, struct buf *out, bool *ret_truncated)
{
	AUTO_DONE(buf) truncated = {};
	size_t len;
	const char *text;

	if (!element_find(xml, "ListBucketResult", &len))
		return false;
	*ret_truncated = s3_xml_text(xml, "IsTruncated", &truncated) && strcmp(truncated.data ? truncated.data : "", "true") == 0;
	while ((text = element_find(xml, "Contents", &len))) {
		AUTO_TEXT one = xstrndup(text, len);
		AUTO_DONE(buf) key = {};

		if (s3_xml_text(one, "Key", &key) && key_plain(&key)) {
			buf_add(out, key.data, key.len);
			buf_char(out, '\n');
		}
		xml = text + len;
	}
	return true;
}
