#include <array>
#include <bitset>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

template <typename T, std::size_t N> struct Matrix {
	std::array<std::array<T, N>, N> a{};
	friend Matrix operator*(const Matrix &x, const Matrix &y) { Matrix r; for (std::size_t i = 0; i < N; i++) for (std::size_t j = 0; j < N; j++) for (std::size_t k = 0; k < N; k++) r.a[i][j] += x.a[i][k] * y.a[k][j]; return r; }
};
struct Base { virtual ~Base() { std::cout << "~Base\n"; } virtual std::string name() const { return "base"; } };
struct Derived : Base { ~Derived() override { std::cout << "~Derived\n"; } std::string name() const override { return "derived"; } };
template <typename... A> auto sum(A... a) { return (a + ... + 0); }
struct Bad : std::runtime_error { using runtime_error::runtime_error; };

int main()
{
	Matrix<long, 2> f{ { { { 1, 1 }, { 1, 0 } } } }, r{ { { { 1, 0 }, { 0, 1 } } } };
	for (int i = 0; i < 50; i++) r = r * f;
	std::cout << r.a[0][1] << ' ' << sum(1, 2, 3) << ' ' << std::bitset<8>(37) << '\n';
	{ Base *b = new Derived; std::cout << b->name() << '\n'; delete b; }
	std::function<int(int)> fact = [&](int n) { return n < 2 ? 1 : n * fact(n - 1); };
	auto [x, y, z] = std::tuple{ 1, 'c', std::string_view("view") };
	std::cout << fact(10) << x << y << z << '\n';
	std::multiset<int> s{ 3, 1, 3 };
	std::list<int> l{ 1, 2, 3 };
	l.remove_if([](int n) { return n == 2; });
	std::deque<int> d{ 1, 2 };
	d.push_front(0);
	std::cout << s.count(3) << l.size() << d[0] << R"(raw \n)" << '\n';
	try { throw Bad("thrown"); } catch (const std::exception &e) { std::cout << e.what() << '\n'; }
	throw Bad("and not caught");
}
