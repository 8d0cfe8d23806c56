/* SPDX-License-Identifier: Apache-2.0 */
/* Distinguishes files on disk from files whose contents the kernel generates. */
#pragma once

/*
 * 0: a regular file of an ordinary file system. -EINVAL: another kind of file, or one of procfs,
 * sysfs and the like.
 */
int plain_file_check(int fd);
