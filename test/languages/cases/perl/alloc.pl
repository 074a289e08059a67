my $block = "x" x (64 << 20);
print "allocated ", length($block), "\n";
