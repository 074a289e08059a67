#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	size_t size = 64u << 20;
	volatile char *block = malloc(size);

	for (size_t i = 0; i < size; i++)
		block[i] = 'x';
	printf("allocated %zu\n", size);
	return block[size - 1] == 'x' ? 0 : 1;
}
