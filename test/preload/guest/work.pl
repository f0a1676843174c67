# SPDX-License-Identifier: MIT
# Hashes, strings, regular expressions, sort, closures, ithreads, fork, eval.
use strict;
use warnings;
use threads;
use Digest::SHA qw(sha1_hex);
use Storable qw(freeze dclone);

my $state = 42;
sub rnd { $state = ($state * 1103515245 + 12345) & 0x7fffffff; return ($state >> 8) % $_[0]; }

my %h;
push @{ $h{ rnd(5000) } }, 'x' x rnd(300) for 1 .. 100000;
my $sum = 0;
$sum += length for map { @$_ } values %h;
print "hash ", scalar(keys %h), " $sum\n";
delete $h{$_} for grep { $_ % 3 } keys %h;

my $text = join ' ', map { sprintf '%x', rnd(1 << 20) } 1 .. 100000;
my %n;
$n{ length $1 }++ while $text =~ /\b([0-9a-f]+)\b/g;
print join(',', map { "$_=$n{$_}" } sort keys %n), "\n";
(my $copy = $text) =~ s/([a-f]+)/<$1>/g;
print sha1_hex($copy), sha1_hex(join ' ', sort { $a cmp $b } split / /, $text), "\n";
my $deep = [];
$deep = [ $deep, { n => $_, s => "s$_" } ] for 1 .. 100;
print "storable ", length(freeze(dclone($deep))) > 0, "\n";

sub fill {
    my ($k) = @_;
    my %l;
    $l{ $_ % 1000 } .= $k for 1 .. 50000;
    return sha1_hex(join ',', map { "$_$l{$_}" } sort keys %l);
}
print "thread ", $_->join, "\n" for map { threads->create(\&fill, $_) } 1 .. 4;
for my $k (1 .. 4) {
    my $pid = open(my $from, '-|') // die;
    if (!$pid) {
        print "child $k ", length(join '', map { 'y' x $_ } 1 .. 1000), "\n";
        exit 0;
    }
    print <$from>;
}
eval { die { code => 7 } };
print "eval $@->{code}, big ", length('z' x 50_000_000), "\n";
