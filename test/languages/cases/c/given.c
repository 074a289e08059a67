#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	char line[100] = "";
	FILE *file = fopen("data/input.txt", "r");
	int c;

	for (int i = 1; i < argc; i++)
		puts(argv[i]);
	if (!file || !fgets(line, sizeof(line), stdin))
		return 1;
	printf("got: %s", line);
	puts(getenv("GREETING"));
	while ((c = getc(file)) != EOF)
		putchar(c);
	return 7;
}
