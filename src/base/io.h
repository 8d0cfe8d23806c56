/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes files and descriptors; locks; random numbers. Functions return 0 or -errno. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;

int io_write_all(int fd, const void *data, size_t len);
int io_read_all(int fd, struct buf *out, size_t max); /* to the end; -EFBIG beyond max */
int io_read_file(const char *path, struct buf *out, size_t max);
int io_write_file(const char *path, const void *data, size_t len, mode_t mode); /* temp, fsync, rename, fsync(dir) */
int io_mkdirs(const char *path, mode_t mode); /* parents get the same mode; existing directories are kept */
int io_set_nonblock(int fd);
int io_memfd_sealed(const char *name, const void *data, size_t len); /* descriptor, or -errno */
int io_lock_file(const char *path);  /* descriptor holding an exclusive flock; -EWOULDBLOCK if held */
/*
 * A path that executes this program, even after its file was replaced by a newer version. valgrind
 * cannot execute /proc/self/exe; under valgrind the result is the path of the program, in 'room'.
 */
#define OWN_PROGRAM_MAX 4096
const char *io_own_program(char room[OWN_PROGRAM_MAX]);
void io_random(void *out, size_t len);
int64_t io_random_upto(int64_t max); /* 0 to max */
#define RANDOM_ID_LEN 32
void io_random_id(char out[RANDOM_ID_LEN + 1]); /* 128 random bits in hex */
