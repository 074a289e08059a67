my $line = <STDIN>;
print "got: $line";
