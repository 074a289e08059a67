/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision → plan without namespaces. Programs see the host's paths. What they may read and write is Landlock's alone: the same
 * directories of /usr and entries of /etc that other sandboxes show, and a place of their own, PLACE_DIR/NUMBER, with /sandbox,
 * /tmp and /build in it. Words and variables that name these paths are rewritten. Code is not.
 */
#include "plan/build-private.h"
#include "plan/filter.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Beside the product of a compiler. */
#define PRELUDE_FILE ".atoll-prelude"

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || strchr("._-", c);
}

/* At the begin of a word, after a separator, or after an option of one letter: -I/kit. */
static bool may_begin_path(const char *word, const char *at)
{
	return at == word || (at == word + 2 && *word == '-') ||
	       (at[-1] != '/' && at[-1] != '~' && !is_name_byte(at[-1]));
}

static const struct place_path *find_path(const struct place_path *places, const char *at)
{
	for (; places->from; places++) {
		size_t n = strlen(places->from);

		if (strncmp(at, places->from, n) == 0 && (!at[n] || !is_name_byte(at[n])))
			return places;
	}
	return NULL;
}

int build_place_word(const struct place_path *places, const char *word, struct buf *ret)
{
	const char *at = word;
	int r = 0;

	while (r == 0 && *at) {
		const struct place_path *path = *at == '/' && may_begin_path(word, at)
							? find_path(places, at)
							: NULL;

		r = path ? buf_puts(ret, path->to) : buf_append(ret, at, 1);
		at += path ? strlen(path->from) : 1;
	}
	return r;
}

static void choose_places(struct plan_builder *b, const struct plan_input *in)
{
	size_t n = 0;

	for (; n < _PLACE_DIR_MAX; n++) {
		(void)snprintf(b->place_text[n], sizeof(b->place_text[n]), PLACE_DIR "/%u%s",
			       in->place, place_dirs[n]);
		b->place_paths[n] = (struct place_path){ place_dirs[n], b->place_text[n] };
	}
	if (in->kit)
		b->place_paths[n++] = (struct place_path){ SANDBOX_KIT, in->kit };
	if (in->prelude) {
		(void)snprintf(b->prelude, sizeof(b->prelude), "%s/" PRELUDE_FILE,
			       b->place_text[PLACE_BUILD]);
		b->place_paths[n++] = (struct place_path){ SANDBOX_PRELUDE, b->prelude };
	}
	b->place_paths[n] = (struct place_path){ 0 };
	b->places = b->place_paths;
}

static void add_files(struct plan_builder *b, const struct plan_input *in)
{
	for (size_t i = 0; i < in->n_files; i++) {
		const struct build_file *f = &in->files[i];
		const char *base = b->place_text[strcmp(f->base, SANDBOX_BUILD) == 0 ? PLACE_BUILD
										     : PLACE_WORK];
		char path[PLAN_PATH_MAX];
		int n = snprintf(path, sizeof(path), "%s/%s", base, f->path);

		if (n < 0 || (size_t)n >= sizeof(path)) {
			b->r = b->r ? b->r : -ENAMETOOLONG;
			return;
		}
		build_parents(b, path, strlen(base) + 1);
		build_op(b, (struct op){ .kind = OP_FILE, .mode = f->mode },
			 (struct op_args){ .a = f->data.data ? f->data.data : "",
					   .a_len = f->data.len,
					   .b = path });
	}
}

static void add_access(struct plan_builder *b, const char *path, int64_t access)
{
	build_op(b,
		 (struct op){
			 .kind = OP_LANDLOCK, .flags = OP_OPTIONAL, .value = access, .value2 = 1 },
		 (struct op_args){ .b = path });
}

/* The files of the host that other sandboxes show. /bin and the like are links to /usr, or directories beside it. */
static void add_host(struct plan_builder *b, const struct plan_input *in)
{
	static const char *const beside[] = {
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"
	};
	static const char *const nodes[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					     "/dev/urandom" };
	const struct decision *d = in->decision;

	for (const char **usr = d->policy->usr; *usr; usr++)
		build_landlock(b, *usr, ACCESS_READ, true);
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
		add_access(b, beside[i], ACCESS_READ);
	for (const char **e = d->policy->etc; *e; e++)
		build_etc_access(b, *e);
	for (const char **e = d->language ? d->language->etc : NULL; e && *e; e++)
		build_etc_access(b, *e);
	if (in->kit)
		add_access(b, in->kit, ACCESS_READ);
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		add_access(b, nodes[i], ACCESS_DEVICE);
}

static void add_own(struct plan_builder *b, const struct decision *d)
{
	const int64_t read = ACCESS_READ, write = ACCESS_READ | ACCESS_WRITE;
	const bool closed = d->libraries_only;

	build_landlock(b, b->place_text[PLACE_WORK], d->read_only || closed ? read : write, true);
	build_landlock(b, b->place_text[PLACE_TMP], closed ? read : write, true);
	build_landlock(b, b->place_text[PLACE_BUILD], read, true);
}

void build_minimal(struct plan_builder *b, const struct plan_input *in)
{
	const struct decision *d = in->decision;

	choose_places(b, in);
	build_op(b, (struct op){ .kind = OP_PLACE, .value = in->place },
		 (struct op_args){ .b = b->place_text[PLACE_WORK] });
	build_op(b,
		 (struct op){ .kind = OP_SCRATCH,
			      .value = d->limits.disk_bytes,
			      .value2 = d->limits.files },
		 (struct op_args){ 0 });
	add_files(b, in);
	if (in->prelude)
		build_op(b, (struct op){ .kind = OP_FILE, .mode = 0644 },
			 (struct op_args){ .a = in->prelude, .b = b->prelude });
	/* Its init has another user. No file system keeps the bound of all files, so none of them may exceed it. */
	build_rlimits(b, d, d->limits.pids, MIN(d->limits.file_size_bytes, d->limits.disk_bytes));
	add_host(b, in);
	add_own(b, d);
	build_op(b, (struct op){ .kind = OP_REQUIRE, .value = d->policy->required },
		 (struct op_args){ 0 });
	build_op(b, (struct op){ .kind = OP_SECCOMP, .value = FILTER_MINIMAL },
		 (struct op_args){ 0 });
}
