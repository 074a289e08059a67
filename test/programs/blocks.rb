require "json"
require "set"
require "date"
Person = Struct.new(:name, :age) do
  include Comparable
  def <=>(other) = age <=> other.age
end
people = [Person.new("Ada", 36), Person.new("Bo", 41), Person.new("Cy", 7)]
puts people.min.name, people.sort.map(&:name).inspect, people.sum(&:age)
puts people.group_by { |p| p.age > 18 }.transform_values { |v| v.map(&:name) }.to_json
fib = Enumerator.new { |y| a, b = 0, 1; loop { y << a; a, b = b, a + b } }
puts fib.lazy.select(&:even?).first(5).inspect
module Loud; def speak = super.upcase + "!"; end
class Dog; prepend Loud; def speak = "woof"; end
puts Dog.new.speak, Set[1, 2, 2].size, "%05.2f|%-5s|%x" % [3.14159, "ab", 255]
case { name: "x", tags: [1, 2] }
in { name: String => n, tags: [first, *] } then puts "#{n} #{first}"
end
puts Date.new(2024, 2, 29).next_year, "añ🎉".length, "añ".bytes.size, "a-b_c".tr("-_", "  ").split.inspect
puts (1..10).each_slice(3).map(&:sum).inspect, 10.pow(20), 7.fdiv(2), [3, 1, 2].sort { |a, b| b <=> a }.inspect
begin
  Integer("zz")
rescue ArgumentError => e
  puts e.message
ensure
  puts "ensured"
end
