/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts of the shells. */
#pragma once

const char *scripts_find(const char *shell); /* NULL: an unknown shell */
