/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of defaults by language (SANDBOX_LANGUAGE_CONFIG_FILE). The monitor reads it, because the front may
 * not have access, and checks it, so that a mistake stops the start.
 */
#include "atoll/daemon/config.h"

#include "base/buf.h"
#include "base/fd.h"
#include "spec/yaml.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { LANGUAGE_FILE_MAX = 64 << 10 };

static int refuse_languages(const struct config *c, const char *why, struct error *err)
{
	return error_field(err, "language_config", "language_config: '%.200s': %s",
			   c->language_config, why);
}

int config_presets(const struct config *c, struct presets *ret, struct error *err)
{
	const struct document doc = { .name = c->language_config,
				      .text = c->language_text,
				      .len = strlen(c->language_text) };
	struct error why = { 0 };
	json_t *root = NULL;
	int r = json_parse(&doc, &root, &why);

	if (r == 0)
		r = presets_parse(root, ret, &why);
	json_decref(root);
	return r < 0 ? refuse_languages(c, why.text, err) : 0;
}

int config_read_languages(struct config *c, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_buf_ struct buf text = { 0 };
	struct presets presets;
	int r;

	if (!*c->language_config)
		return 0;
	fd = open(c->language_config, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return refuse_languages(c, strerror(errno), err);
	buf_init(&text, LANGUAGE_FILE_MAX);
	r = buf_read_fd(&text, fd);
	if (r < 0 || memchr(text.len ? text.data : "", '\0', text.len))
		return refuse_languages(c, "it is not a text of at most 64 KiB", err);
	c->language_text = arena_strndup(&c->memory, text.len ? text.data : "", text.len);
	if (!c->language_text)
		return error_oom(err);
	return config_presets(c, &presets, err);
}
