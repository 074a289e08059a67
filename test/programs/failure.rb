class Oops < StandardError; end
def deep(n) = n.zero? ? raise(Oops, "bottom") : deep(n - 1)
begin
  deep(3)
rescue Oops => e
  puts e.message, e.backtrace.size
end
catch(:found) { 10.times { |i| throw :found if i == 3 } }
puts [1, nil, 3].compact.sum
nil.upcase
