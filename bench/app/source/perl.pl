# SPDX-License-Identifier: MIT
# Reads a web server's log from standard input; prints a report.
use strict;
use warnings;

my (%host, %path, %query, @slow);
my $number = 0;
while (my $line = <STDIN>) {
    $number++;
    next unless $line =~ m{^(\S+) - - \[(\d+):(\d+)\] "GET (/[^?]*)\?(\S*) HTTP/1\.1" (\d+) (\d+) "([^"]*)"};
    my ($name, $hour, $second, $where, $what, $status, $bytes, $agent) = ($1, $2, $3, $4, $5, $6, $7, $8);
    my $entry = { hour => $hour + 0, second => $second + 0, path => $where, bytes => $bytes,
                  agent => [map { ucfirst } split / /, $agent] };
    push @{ $host{$name}{$status} }, $entry;
    my @parts = split m{/}, $where;
    shift @parts;
    $path{ join '/', @parts[0 .. $_] }++ for 0 .. $#parts;
    for my $pair (split /&/, $what) {
        my ($key, $value) = split /=/, $pair;
        $query{$key}{$value}++;
    }
    push @slow, $entry if $bytes > 90000;
    # Old entries go, so that memory is given back in the middle of the work.
    delete $host{$name}{304} if $number % 7 == 0;
}

for my $name (sort keys %host) {
    for my $status (sort keys %{ $host{$name} }) {
        my @entries = sort { $b->{bytes} <=> $a->{bytes} || $a->{path} cmp $b->{path} } @{ $host{$name}{$status} };
        my $sum = 0;
        $sum += $_->{bytes} for @entries;
        my @largest = @entries[0 .. ($#entries < 2 ? $#entries : 2)];
        my $agents = join ',', map { join '', reverse @{ $_->{agent} } } @largest;
        printf "%-20s %s %6d %12d %s\n", $name, $status, scalar @entries, $sum, $agents;
    }
}
my @paths = sort { $path{$b} <=> $path{$a} || $a cmp $b } keys %path;
printf "%6d %s\n", $path{$_}, $_ for @paths[0 .. ($#paths < 500 ? $#paths : 500)];
for my $key (sort keys %query) {
    print "$key: ", join(' ', map { "$_*$query{$key}{$_}" } sort { $a <=> $b } keys %{ $query{$key} }), "\n";
}
print join("\n", map { sprintf '%d:%d %s %s', @$_{qw(hour second path)}, "@{ $_->{agent} }" } @slow), "\n";
print "end\n";
