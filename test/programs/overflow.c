/* SPDX-License-Identifier: Apache-2.0 */
/* One of the programs that run inside and outside: test/languages/test_programs.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned hash(const char *s)
{
	unsigned h = 2166136261u;
	while (*s)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h;
}

int main(void)
{
	static int sieve[100001];
	int primes = 0;
	long long steps = 0;
	char *big = malloc(20 << 20);

	for (int i = 2; i <= 100000; i++) {
		if (sieve[i])
			continue;
		primes++;
		for (long j = (long)i * i; j <= 100000; j += i)
			sieve[j] = 1;
	}
	for (unsigned long n = 27; n != 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	memset(big, 1, 20 << 20);
	printf("%d %lld %u %d\n", primes, steps, hash("collision"), big[12345678]);
	for (int i = 0; i < 30000; i++)
		printf("%d\n", i);
	free(big);
	abort();
}
