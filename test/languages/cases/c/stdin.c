#include <stdio.h>

int main(void)
{
	char line[100] = "";

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	printf("got: %s", line);
	return 0;
}
