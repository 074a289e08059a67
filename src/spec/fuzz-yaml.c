/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as YAML, and as a language file; the class finder gets them as Java. */
#include <assert.h>
#include <string.h>

#include "spec/language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct document doc = { "fuzz", (const char *)data, size };
	struct error err = { 0 };
	struct language *lang = NULL;
	json_t *root = NULL;
	char name[64];

	if (yaml_parse(&doc, &root, &err) == 0)
		json_decref(root);
	else
		assert(err.text[0] && strlen(err.text) < sizeof(err.text));
	if (language_parse(&doc, &lang, NULL) == 0) {
		(void)language_has_shebang(lang, doc.text, doc.len);
		(void)language_matches(lang, lang->title);
		language_source_name(lang, &(struct program_text){ { doc.text, doc.len }, NULL },
				     name, sizeof(name));
	}
	(void)language_free(lang);
	language_class_name(doc.text, doc.len, name, sizeof(name));
	assert(name[0]);
	return 0;
}
