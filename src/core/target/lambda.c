/* SPDX-License-Identifier: Apache-2.0 */
/* Checks names of functions and regions, and the list of functions that jobs may invoke. */
#include "core/target/lambda.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <fnmatch.h>
#include <string.h>

#define NAME_MAX_LEN 64
#define QUALIFIER_MAX_LEN 128
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define SEPARATORS ", \t"

/* An ARN is not accepted: libcurl does not sign a path with colons as AWS does. */
bool lambda_target_check(const char *text, struct err *e)
{
	size_t name = strspn(text, NAME_CHARACTERS), qualifier = 0;

	if (text[name] == ':')
		qualifier = strspn(text + name + 1, NAME_CHARACTERS "$");
	if (name > 0 && name <= NAME_MAX_LEN &&
		(text[name] == '\0' || (qualifier > 0 && qualifier <= QUALIFIER_MAX_LEN && text[name + 1 + qualifier] == '\0')))
		return true;
	return err_field(e, "lambda", "'%.100s' is not FUNCTION or FUNCTION:QUALIFIER, with the name of a function", text);
}

bool lambda_region_check(const char *text, struct err *e)
{
	size_t len = strlen(text);

	return (len > 0 && len <= LAMBDA_REGION_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && text[0] != '-' &&
		       text[len - 1] != '-') ||
		err_field(e, "region", "'%.40s' is not a region, as eu-central-1", text);
}

const char *lambda_target_qualifier(const char *target, size_t *ret_name)
{
	*ret_name = strcspn(target, ":");
	return target[*ret_name] == ':' ? target + *ret_name + 1 : NULL;
}

bool lambda_functions_check(const char *list, struct err *e)
{
	for (const char *at = list; *(at += strspn(at, SEPARATORS)); at += strcspn(at, SEPARATORS)) {
		size_t len = strcspn(at, SEPARATORS);
		const char *colon = memchr(at, ':', len);
		const char *pattern = colon ? colon + 1 : at;
		size_t n = len - (size_t)(pattern - at);

		if (n == 0 || colon == at || strspn(pattern, NAME_CHARACTERS "*?[]!") < n)
			return err_set(e, ERR_INVALID, "'%.*s' is not PATTERN or USER:PATTERN", (int)(len < 80 ? len : 80), at);
	}
	return true;
}

bool lambda_functions_allow(const char *list, const char *user, const char *target)
{
	AUTO_TEXT name = xstrndup(target, strcspn(target, ":"));

	for (const char *at = list; at && *(at += strspn(at, SEPARATORS)); at += strcspn(at, SEPARATORS)) {
		size_t len = strcspn(at, SEPARATORS);
		const char *colon = memchr(at, ':', len);
		const char *from = colon ? colon + 1 : at;
		AUTO_TEXT pattern = xstrndup(from, len - (size_t)(from - at));

		if (colon && (!user || strlen(user) != (size_t)(colon - at) || strncmp(user, at, (size_t)(colon - at)) != 0))
			continue;
		if (fnmatch(pattern, name, 0) == 0)
			return true;
	}
	return false;
}
