use strict; use warnings; use IO::Socket::INET; use IO::Select;
my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
my $pid = fork;
if (!$pid) {
    my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $s->sockport) or die $!;
    print $c "hello\n"; print scalar <$c>; exit 4;
}
my $p = $s->accept; my $line = <$p>; print $p uc $line; close $p;
waitpid $pid, 0; print "child ", $? >> 8, "\n";
my $none = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => 1); print $none ? "open" : "refused", "\n";
print IO::Select->new($s)->can_read(0) ? "more" : "quiet", "\n";
