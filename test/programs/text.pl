use strict; use warnings; use utf8;
binmode STDOUT, ':utf8';
my %count; $count{$_}++ for split /\W+/, lc 'The cat and the hat and the bat';
print "$_ $count{$_}\n" for sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
my @sorted = map { $_->[1] } sort { $a->[0] <=> $b->[0] } map { [length, $_] } qw(pear fig banana);
print "@sorted\n", join(',', grep { $_ % 2 } 1 .. 9), "\n";
(my $t = 'x=1, y=22') =~ s/(\d+)/$1 * 2/ge; print "$t\n";
printf "%05.2f|%-5s|%x|%s\n", 3.14159, 'ab', 255, scalar reverse 'añ🎉';
my $tree = { v => 1, kids => [ { v => 2 }, { v => 3, kids => [ { v => 4 } ] } ] };
sub total { my $n = shift; my $s = $n->{v}; $s += total($_) for @{ $n->{kids} || [] }; $s } print total($tree), "\n";
eval { die { code => 7 } }; print "caught $@->{code}\n";
local $_ = "a1b2"; print join('|', /([a-z])(\d)/g), "\n";
package Animal { sub new { my ($c, %a) = @_; bless {%a}, $c } sub name { $_[0]{name} } } package Dog { our @ISA = 'Animal'; sub speak { $_[0]->name . ' barks' } }
print Dog->new(name => 'Rex')->speak, "\n";
my @gm = gmtime(86400 * 365); printf "%04d-%02d-%02d\n", $gm[5] + 1900, $gm[4] + 1, $gm[3];
exit 9;
