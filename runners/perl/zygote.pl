# SPDX-License-Identifier: Apache-2.0
# A Perl to fork programs from: PERL5OPT="-M-strict;BEGIN{require('zygote.pl')}" perl /sandbox/main.pl MODULE…
#
# Perl opens its script, then runs what -M says, then compiles the script from the handle it has. This file forks in between:
# a child only puts the request's script behind that handle, and its words and variables in their places.
# Perl itself then compiles and runs the script as ever, so messages, DATA, $0, exit codes, BEGIN and END are its own. What
# is open at first is some other file: see ATOLL_ENTRY in languages/perl.yaml.
#
# Known to differ from a cold run: the seed of hashes and addresses are shared by the children of one zygote; `strict` and
# `warnings` count as loaded when the script has these words anywhere; %main:: has entries for $!, $. and BEGIN.
require $_ for "strict.pm", "warnings.pm", map { tr/./\//r . ".pm" } splice @ARGV;
my $exe = readlink "/proc/self/exe";
my ($script) = grep { ($exe // "") eq (readlink("/proc/self/fd/$_") // "") } 3 .. 99;
exit 1 if !$script || fork;

open my $socket, "<&=", 100;
sysread $socket, my $text, 1;
$text = "";
1 while sysread $socket, $text, 4096, length $text;
# Without its layers the handle goes and leaves the descriptor open.
binmode $socket, ":pop:pop";
my ($count, @words) = split /\0/, $text, -1;
pop @words;
my @argv = splice @words, 0, $count;
# The process has these already; only the hash must follow. To empty it would free what is not Perl's.
my %env = map { split /=/, $_, 2 } @words;
delete @ENV{ grep { !exists $env{$_} } keys %ENV };
$ENV{$_} = $env{$_} for grep { ($ENV{$_} // "") ne $env{$_} || !exists $ENV{$_} } keys %env;

# open() keeps the number of a descriptor up to $^F.
$^F = $script;
open my $handle, "<&=", $script;
open $handle, "<", $argv[1];
fcntl $handle, 2, 1;
$^F = 2;
read $handle, $text, -s $handle;
seek $handle, 0, 0;
# Of another name, or for another interpreter (Perl then executes that one with these words): it must start again.
exec { $argv[0] } @argv if $argv[1] ne $0 || $text =~ /\A#!(?!.*perl)/;

# What a script does not use it does not find loaded.
for my $module (qw(strict warnings)) {
	next if index($text, $module) >= 0;
	delete $INC{"$module.pm"};
	delete $main::{"$module\::"};
}
delete $main::{"Carp::"} if !$INC{"warnings.pm"} && !$INC{"Carp.pm"};
@ARGV = @argv[2 .. $#argv];
delete $INC{+__FILE__};
delete $main::{"_<" . __FILE__};
$^T = time;
undef $_ for $socket, $handle;
$! = 0;
1;
