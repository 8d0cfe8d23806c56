/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the XML answers of S3-compatible storage. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;

/* The text of the first element with this name, entities decoded. False: there is none. */
bool s3_xml_text(const char *xml, const char *element, struct buf *out);
/*
 * Appends the keys of a list of objects, each followed by a newline. Keys with control characters are left out. False: the text is
 * not a list.
 */
bool s3_xml_keys(const char *xml, struct buf *out, bool *ret_truncated);
