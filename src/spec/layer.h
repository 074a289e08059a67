/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of isolation by name: a policy may require them, and a result may report them as missing. */
#pragma once

/*
 * What a policy wants. Full: namespaces, and what else of the layers below the host has. Minimal: for hosts where namespaces cannot
 * be had; a run never gets it unless its policy says so.
 */
enum isolation_tier { ISOLATION_FULL, ISOLATION_MINIMAL };

enum layer {
	LAYER_USERNS,
	LAYER_UNIQUE_UID,
	LAYER_SECCOMP,
	LAYER_LANDLOCK,
	LAYER_CGROUP_MEMORY,
	LAYER_CGROUP_PIDS,
	LAYER_CGROUP_CPU,
	LAYER_OVERLAY,
	LAYER_PROC,
	LAYER_BROKER, /* Atoll's own processes: box/confine/ */
	LAYER_FRONT,
	_LAYER_MAX,
};
