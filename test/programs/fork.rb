r, w = IO.pipe
3.times { |i| fork { r.close; w.write([i].pack("N")); exit!(i) } }
w.close
puts Process.waitall.map { |_, s| s.exitstatus }.sort.inspect, r.read.unpack("N*").sort.inspect
m = Mutex.new
cv = ConditionVariable.new
done = false
t = Thread.new { m.synchronize { done = true; cv.signal } }
m.synchronize { cv.wait(m, 1) until done }
t.join
puts done, Thread.new { Thread.current[:x] = 1; raise "in a thread" rescue "rescued" }.value
puts IO.popen(["tr", "a-z", "A-Z"], "r+") { |io| io.write "popen"; io.close_write; io.read }
puts IO.select([IO.pipe[0]], nil, nil, 0.01).inspect, Process.clock_gettime(Process::CLOCK_MONOTONIC).positive?
abort "aborted"
