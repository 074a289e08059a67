#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

int main(int argc, char **argv)
{
	std::string line;

	for (int i = 1; i < argc; i++)
		std::cout << argv[i] << "\n";
	std::getline(std::cin, line);
	std::cout << "got: " << line << "\n" << std::getenv("GREETING") << "\n" << std::ifstream("data/input.txt").rdbuf();
	return 7;
}
