#include <cstdlib>
#include <iostream>

int main()
{
	std::cout << std::getenv("GREETING") << "\n";
}
