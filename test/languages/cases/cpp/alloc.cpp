#include <iostream>
#include <vector>

int main()
{
	std::vector<char> block(64u << 20, 'x');

	std::cout << "allocated " << block.size() << "\n";
	return block.back() == 'x' ? 0 : 1;
}
