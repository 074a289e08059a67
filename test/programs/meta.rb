class Base
  def self.attr_checked(name, &check)
    define_method("#{name}=") { |v| check.(v) ? instance_variable_set("@#{name}", v) : raise(ArgumentError, "#{name}: #{v}") }
    define_method(name) { instance_variable_get("@#{name}") }
  end
  def method_missing(name, *args) = name.start_with?("say_") ? name.to_s.delete_prefix("say_") : super
  def respond_to_missing?(name, all = false) = name.start_with?("say_") || super
end
class Thing < Base
  attr_checked(:size) { |v| v > 0 }
end
t = Thing.new
t.size = 3
puts t.size, t.say_hello, t.respond_to?(:say_x), Thing.ancestors.first(2).inspect
begin; t.size = -1; rescue ArgumentError => e; puts e.message; end
f = Fiber.new { |x| loop { x = Fiber.yield(x * 2) } }
puts f.resume(1), f.resume(10), ObjectSpace.respond_to?(:each_object)
puts [1, 2, 3].each_with_object({}) { |i, h| h[i] = i**2 }.inspect, (1..Float::INFINITY).lazy.map { |x| x * 2 }.reject { |x| x % 3 == 0 }.first(4).inspect
puts "%s and %p" % ["str", nil], :sym.to_proc.call("x") rescue puts "no sym"
puts Comparable.instance_methods.sort.first(3).inspect, 5.clamp(1, 3), "abc".succ, "Hello"[1..3], [[1, [2]], 3].flatten.inspect, Time.at(0).utc.iso8601 rescue puts Time.at(0).utc
