print "$_\n" for @ARGV;
my $line = <STDIN>;
print "got: $line$ENV{GREETING}\n";
open(my $file, "<", "data/input.txt") or die;
print <$file>;
exit 7;
