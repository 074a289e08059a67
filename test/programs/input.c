/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

struct node {
	int key;
	struct node *left, *right;
};
static struct node *insert(struct node *n, int key)
{
	if (!n) {
		n = calloc(1, sizeof(*n));
		n->key = key;
	} else if (key < n->key) {
		n->left = insert(n->left, key);
	} else {
		n->right = insert(n->right, key);
	}
	return n;
}
static void show(const struct node *n)
{
	if (n) {
		show(n->left);
		printf("%d ", n->key);
		show(n->right);
	}
}
static int sum(int n, ...)
{
	va_list ap;
	int s = 0;
	va_start(ap, n);
	while (n--)
		s += va_arg(ap, int);
	va_end(ap);
	return s;
}
static jmp_buf back;
static void leave(void)
{
	puts("atexit");
}

int main(int argc, char **argv)
{
	struct node *tree = NULL;
	int n;
	wchar_t wide[20];

	atexit(leave);
	while (scanf("%d", &n) == 1)
		tree = insert(tree, n);
	show(tree);
	printf("\n%d %s %d\n", argc, argc > 1 ? argv[1] : "-", sum(3, 1, 2, 3));
	setlocale(LC_ALL, "C.UTF-8");
	printf("%zu %s %.3f %llx\n", mbstowcs(wide, "a\xc3\xb1o", 20),
	       getenv("HOME") ? "home" : "none", pow(2, 0.5), (unsigned long long)UINT64_MAX);
	if (setjmp(back) == 0)
		longjmp(back, 1);
	else
		puts("jumped");
	printf("%ld %d %s\n", strtol("0x1f", NULL, 0), toupper('a'), strerror(ENOENT));
	fprintf(stderr, "to stderr\n");
	return 13;
}
