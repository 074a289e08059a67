use strict; use warnings;
my %h = (one => 1, two => 2, three => 3); my @k = sort { $h{$a} <=> $h{$b} } keys %h; print "@k\n"; my %r = reverse %h; print $r{2}, "\n";
my @m = ([1, 2], [3, 4]); print join(';', map { join ',', @$_ } @m), "\n"; my ($first, @rest) = (1 .. 4); print "$first @rest\n";
sub make { my $n = shift; return sub { return $n++ } } my $c = make(5); $c->(); print $c->(), "\n"; print "ok\n" if 'foobar' =~ /^foo(?=bar)/;
my $s = sprintf '%s', join '', map { chr ord($_) + 1 } split //, 'HAL'; print "$s\n"; my @s = splice @{[1 .. 6]}, 1, 3; print "@s\n"; print "a" x 3, "-" , "b" . 1 + 2, "\n" if 0; print "last\n";
while (my ($i, $v) = each @k) { print "$i$v " } print "\n"; my $str = "2024-05-06"; my ($y, $mo) = $str =~ /(\d+)-(\d+)/; print $y + $mo, "\n"; print lc('ABC') . ucfirst('xyz') . length('four'), "\n";
local $, = '-'; print 1, 2, 3; print "\n"; my $undef; { no warnings; print $undef + 1, "\n" } printf "%.2e %s\n", 12345.678, 1_000_000 / 3 > 3 ? 'big' : 'small'; print wantarray() // 'undef', "\n";
