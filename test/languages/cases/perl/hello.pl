print "hello from perl\n";
