#include <algorithm>
#include <concepts>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <variant>
#include <vector>

template <typename T> concept Number = std::integral<T> || std::floating_point<T>;
template <Number T> T total(std::span<const T> xs) { return std::accumulate(xs.begin(), xs.end(), T{}); }
struct Point { int x, y; auto operator<=>(const Point &) const = default; };
template <class... Ts> struct overloaded : Ts... { using Ts::operator()...; };
template <class... Ts> overloaded(Ts...) -> overloaded<Ts...>;
constexpr int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static_assert(fib(10) == 55);
std::optional<int> find(const std::map<std::string, int> &m, const std::string &k)
{
	if (auto it = m.find(k); it != m.end()) return it->second;
	return std::nullopt;
}

int main()
{
	std::vector<int> v(10);
	std::iota(v.begin(), v.end(), 1);
	for (int x : v | std::views::filter([](int n) { return n % 2 == 0; }) | std::views::transform([](int n) { return n * n; }))
		std::cout << x << ' ';
	std::cout << total<int>(v) << '\n';
	std::map<std::string, int> ages{ { "ada", 36 }, { "bo", 41 } };
	for (const auto &[name, age] : ages) std::cout << name << '=' << age << ' ';
	std::cout << find(ages, "bo").value_or(-1) << find(ages, "cy").value_or(-1) << '\n';
	std::variant<int, std::string> any = "text";
	std::visit(overloaded{ [](int) { std::cout << "int\n"; }, [](const std::string &s) { std::cout << s << '\n'; } }, any);
	auto shared = std::make_shared<Point>(Point{ 1, 2 });
	std::weak_ptr<Point> weak = shared;
	std::cout << (Point{ 1, 2 } < Point{ 1, 3 }) << shared.use_count() << !weak.expired() << '\n';
	std::ranges::sort(v, std::greater{});
	std::cout << v.front() << std::ranges::max(v) << '\n';
}
