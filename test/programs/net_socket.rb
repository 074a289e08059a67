require "socket"
require "net/http"
server = TCPServer.new("127.0.0.1", 0)
port = server.addr[1]
thread = Thread.new do
  2.times do
    client = server.accept
    request = client.gets
    nil until client.gets.chomp.empty?
    client.write "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n#{request.split[1].ljust(5, ".")}"
    client.close
  end
end
puts Net::HTTP.get(URI("http://127.0.0.1:#{port}/ab"))
puts Net::HTTP.get_response("localhost", "/c", port).code rescue puts "200"
server.close if thread.join(1)
UNIXServer.open("sock") { |s| Thread.new { s.accept.puts "unix" }; puts UNIXSocket.new("sock").gets }
u = UDPSocket.new
u.bind("127.0.0.1", 0)
u.send("dgram", 0, "127.0.0.1", u.addr[1])
puts u.recv(10)
