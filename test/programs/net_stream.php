<?php
$server = stream_socket_server('tcp://127.0.0.1:0', $no, $text);
$client = stream_socket_client('tcp://' . stream_socket_get_name($server, false));
$peer = stream_socket_accept($server);
fwrite($client, "hello\n");
echo strtoupper(fgets($peer));
fwrite($peer, str_repeat('x', 100000));
fclose($peer);
echo strlen(stream_get_contents($client)), "\n";
echo @stream_socket_client('tcp://127.0.0.1:1', $no, $text) === false ? "refused $no\n" : "open\n";
$u = stream_socket_server('udp://127.0.0.1:0', $no, $text, STREAM_SERVER_BIND);
stream_socket_sendto($u, 'dgram', 0, stream_socket_get_name($u, false));
echo stream_socket_recvfrom($u, 10), "\n";
