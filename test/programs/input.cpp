#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>

namespace fs = std::filesystem;

int main(int argc, char **argv)
{
	std::unordered_map<std::string, int> counts;
	std::string word, line;
	while (std::cin >> word) counts[word]++;
	std::cout << counts["10"] << ' ' << counts.size() << ' ' << argc << ' ' << (argc > 1 ? argv[1] : "-") << '\n';
	fs::create_directories("d/e");
	std::ofstream("d/e/f.txt") << "one\ntwo\n";
	std::ifstream in("d/e/f.txt");
	while (std::getline(in, line)) std::cout << line << '|';
	std::cout << fs::file_size("d/e/f.txt") << ' ' << fs::relative("d/e", "d").string() << ' ' << fs::remove_all("d") << '\n';
	std::string text = "key=value; n=42";
	std::cout << text.substr(text.find("n=") + 2) << ' ' << std::hex << std::setw(6) << std::setfill('0') << 255 << std::dec << ' ' << std::fixed << std::setprecision(2) << 3.14159 << '\n';
	std::istringstream s("1 2 x");
	int n, total = 0;
	while (s >> n) total += n;
	std::cout << total << s.fail() << '\n';
	std::cerr << "to stderr\n";
	return 21;
}
