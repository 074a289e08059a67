require "open3"
require "tempfile"
require "timeout"
out, status = Open3.capture2("sort", stdin_data: "b\na\n")
puts out, status.exitstatus
r, w = IO.pipe
pid = fork { r.close; w.puts "child"; exit!(3) }
w.close
puts r.read
Process.wait(pid)
puts $?.exitstatus, `echo back`.strip
Tempfile.create("x") { |f| f.write("tmp"); f.flush; puts File.size(f.path) }
q = Queue.new
threads = 3.times.map { |i| Thread.new { 10.times { |j| q << i * j } } }
threads.each(&:join)
puts q.size
begin
  Timeout.timeout(0.05) { sleep 5 }
rescue Timeout::Error
  puts "timed out"
end
trap("USR1") { puts "signal" }
Process.kill("USR1", Process.pid)
sleep 0.05
puts ARGV.inspect, $stdin.read.lines.map(&:to_i).sum
at_exit { puts "bye" }
exit 2
