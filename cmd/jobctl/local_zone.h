/* SPDX-License-Identifier: Apache-2.0 */
/* The time zone of the machine, for jobctl. */
#pragma once
#include "base/local_zone.h"
