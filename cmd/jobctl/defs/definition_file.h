/* SPDX-License-Identifier: Apache-2.0 */
/* Reads job definitions from a file or directory. */
#pragma once
#include "base/auto.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

struct definition {
	json_t *o;   /* owned */
	char *where; /* owned: "jobs/web.json, jobs[3]", "web.jsonl:17" */
};
struct definition_list {
	struct definition *v; /* owned, in the order of file names and entries */
	size_t n;
	size_t files, ignored; /* files read, and files of a directory with another ending */
	size_t bytes;          /* of the files read */
	char *set;             /* owned: absolute path, or "set" of the file; NULL: standard input */
};
void definition_list_done(struct definition_list *l);

/*
 * 'path' is a .json file (a set {"jobs":[…]}, a list or one definition), a .jsonl file (one
 * definition per line), "-" for standard input, or a directory with such files. Names that begin
 * with '.' are left out; directories are read to a depth of 8.
 */
bool definition_file_read(const char *path, struct definition_list *ret, struct err *e);
