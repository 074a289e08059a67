print "$ENV{GREETING}\n";
