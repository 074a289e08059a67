#include <stdio.h>

int main(void)
{
	FILE *file = fopen("data/input.txt", "r");
	int c;

	if (!file)
		return 1;
	while ((c = getc(file)) != EOF)
		putchar(c);
	return 0;
}
