/* SPDX-License-Identifier: Apache-2.0 */
/* Receives a file that a child of the spawner has opened as the owner of a job. */
#pragma once

/*
 * Reads the packet of the child, which must have arrived. Returns 0 and the open file, or a positive
 * errno and -1. EIO: the child sent no packet. The file is a regular one of an ordinary file system.
 */
int opened_file_receive(int from, int *ret_fd);
