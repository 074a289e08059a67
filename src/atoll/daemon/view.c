/* SPDX-License-Identifier: Apache-2.0 */
/* See view.h. A path that does not exist on this host is skipped. */
#include "atoll/daemon/view.h"

#include <stdlib.h>
#include <string.h>

static const struct confine_path host_paths[] = {
	/* Runtimes, which are searched and hashed, and libraries. */
	{ "/usr", CONFINE_READ, false },
	{ "/bin", CONFINE_READ, true },
	{ "/sbin", CONFINE_READ, true },
	{ "/lib", CONFINE_READ, true },
	{ "/lib32", CONFINE_READ, true },
	{ "/lib64", CONFINE_READ, true },
	{ "/libx32", CONFINE_READ, true },
	{ "/opt", CONFINE_READ, false },
	{ "/etc/alternatives", CONFINE_READ, false },
	{ "/etc/ld.so.cache", CONFINE_READ, false },
	{ "/etc/localtime", CONFINE_READ, false },
	/* Callbacks: names and TLS. */
	{ "/etc/resolv.conf", CONFINE_READ, false },
	{ "/etc/hosts", CONFINE_READ, false },
	{ "/etc/nsswitch.conf", CONFINE_READ, false },
	{ "/etc/gai.conf", CONFINE_READ, false },
	{ "/etc/host.conf", CONFINE_READ, false },
	{ "/etc/services", CONFINE_READ, false },
	{ "/etc/protocols", CONFINE_READ, false },
	{ "/etc/ssl/certs", CONFINE_READ, false },
	{ "/etc/ssl/openssl.cnf", CONFINE_READ, false },
	{ "/etc/ca-certificates", CONFINE_READ, false },
	{ "/etc/pki/tls/certs", CONFINE_READ, false },
	{ "/etc/pki/ca-trust", CONFINE_READ, false },
	{ "/etc/gnutls", CONFINE_READ, false },
	{ "/etc/crypto-policies", CONFINE_READ, false },
	/* This process only. */
	{ "/proc/self", CONFINE_READ, false },
	{ "/dev/null", CONFINE_DEVICE, false },
	{ "/dev/urandom", CONFINE_DEVICE, false },
};

static void add_view_path(struct confine_path *ret, size_t *n, const char *path,
			  enum confine_access access)
{
	if (path && path[0] == '/' && path[1] && *n + 1 < CONFINE_PATHS_MAX)
		ret[(*n)++] = (struct confine_path){ path, access, false };
}

void view_list(const struct config *c, struct confine_path ret[CONFINE_PATHS_MAX])
{
	size_t n = ARRAY_SIZE(host_paths);

	memcpy(ret, host_paths, sizeof(host_paths));
	add_view_path(ret, &n, c->places.state_dir, CONFINE_STORE);
	add_view_path(ret, &n, c->places.data_dir, CONFINE_READ);
	add_view_path(ret, &n, c->places.policies_dir, CONFINE_READ);
	add_view_path(ret, &n, getenv("ATOLL_KIT_DIR"), CONFINE_READ);
	add_view_path(ret, &n, getenv("SSL_CERT_FILE"), CONFINE_READ);
	add_view_path(ret, &n, getenv("SSL_CERT_DIR"), CONFINE_READ);
	for (size_t i = 0; c->places.images && c->places.images[i]; i++)
		add_view_path(ret, &n, c->places.images[i], CONFINE_READ);
	ret[n] = (struct confine_path){ NULL, CONFINE_READ, false };
}

static bool view_holds(int r, const char *what, struct log *log)
{
	if (r < 0)
		log_say(log, LOG_WARNING, "a wall around the front is missing",
			LOG_TEXT("which", what), LOG_TEXT("why", strerror(-r)));
	return r == 0;
}

enum front_kind view_confine(const struct config *c, bool own_root, struct log *log)
{
	struct confine_path paths[CONFINE_PATHS_MAX];
	bool files, calls;

	view_list(c, paths);
	files = view_holds(confine_files(paths), "Landlock", log);
	calls = view_holds(confine_enter(CONFINE_FRONT), "its filter", log);
	return files && calls && own_root ? FRONT_CONFINED
	       : files || calls		  ? FRONT_PARTLY
					  : FRONT_OPEN;
}
