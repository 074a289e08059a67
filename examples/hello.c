/* Compiled in one sandbox, run in another: atoll run examples/hello.c */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	printf("Hello from C, process %d, user %u.\n", (int)getpid(), (unsigned)getuid());
	return 0;
}
