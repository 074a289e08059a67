#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	puts(getenv("GREETING"));
	return 0;
}
