#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>
#include <vector>

template <typename T> class Channel {
	std::queue<T> q; std::mutex m; std::condition_variable cv; bool closed = false;
public:
	void send(T v) { { std::lock_guard l(m); q.push(std::move(v)); } cv.notify_one(); }
	void close() { { std::lock_guard l(m); closed = true; } cv.notify_all(); }
	bool receive(T &out) { std::unique_lock l(m); cv.wait(l, [&] { return closed || !q.empty(); }); if (q.empty()) return false; out = std::move(q.front()); q.pop(); return true; }
};

int main()
{
	Channel<int> c;
	std::atomic<long> sum = 0;
	std::vector<std::thread> workers;
	for (int i = 0; i < 4; i++) workers.emplace_back([&] { for (int v; c.receive(v);) sum += v; });
	for (int i = 1; i <= 1000; i++) c.send(i);
	c.close();
	for (auto &t : workers) t.join();
	auto f = std::async(std::launch::async, [](int n) { return n * 2; }, 21);
	std::cout << sum << ' ' << f.get() << '\n';
	std::promise<void> p;
	std::thread([&] { p.set_exception(std::make_exception_ptr(std::runtime_error("passed on"))); }).join();
	try { p.get_future().get(); } catch (const std::exception &e) { std::cout << e.what() << '\n'; }
	auto start = std::chrono::steady_clock::now();
	std::this_thread::sleep_for(std::chrono::milliseconds(5));
	std::cout << (std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(5)) << '\n';
	std::vector<int> empty;
	std::cout << empty.at(3);
}
