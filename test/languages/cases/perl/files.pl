open(my $file, "<", "data/input.txt") or die;
print <$file>;
