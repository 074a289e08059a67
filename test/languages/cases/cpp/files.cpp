#include <fstream>
#include <iostream>

int main()
{
	std::cout << std::ifstream("data/input.txt").rdbuf();
}
