/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what this host can enforce. host_probe() must be cheap (it runs on every `atoll run`): it
 * reads files and asks the kernel, and does not fork. host_probe_deep() forks children that really try
 * (user namespace, overlay, procfs mounts) and is what `atoll doctor` uses.
 */
#pragma once

#include "sys/facts.h"

void host_probe(struct host_facts *ret);
void host_probe_deep(struct host_facts *ret);
