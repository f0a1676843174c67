<?php
// SPDX-License-Identifier: MIT
// Arrays, strings, regular expressions, sorting, JSON, serialisation, generators.
mt_srand(42);
$slots = array_fill(0, 1000, '');
$total = 0;
for ($i = 0; $i < 200000; $i++) {
    $slot = mt_rand(0, 999);
    $total += strlen($slots[$slot]);
    $slots[$slot] = str_repeat(chr(65 + $i % 26), mt_rand(0, 400));
}
echo "churn $total ", sha1(implode('|', $slots)), "\n";

$tree = [];
for ($i = 0; $i < 50000; $i++) {
    $tree['k' . ($i % 997)][$i % 13][] = ['id' => $i, 'name' => "name $i"];
}
$json = json_encode($tree);
echo 'json ', strlen($json), ' ', json_decode($json, true) == $tree ? 'same' : 'differs', "\n";
echo 'serialize ', sha1(serialize(unserialize(serialize($tree)))), "\n";
$swapped = preg_replace('/(\d)(\d)/', '$2$1', $json);
echo 'regex ', preg_match_all('/name (\d+)/', $json, $found), ' ', sha1($swapped), "\n";
$numbers = [];
for ($i = 0; $i < 100000; $i++) {
    $numbers[] = mt_rand();
}
sort($numbers);
usort($slots, fn($a, $b) => strlen($a) <=> strlen($b) ?: strcmp($a, $b));
echo 'sort ', sha1(implode(',', $numbers)), ' ', sha1(implode(',', $slots)), "\n";

function numbers(int $n)
{
    for ($i = 0; $i < $n; $i++) {
        yield "n$i" => str_repeat('x', $i % 100);
    }
}
$length = 0;
foreach (numbers(100000) as $key => $value) { $length += strlen($key) + strlen($value); }
echo "generator $length\n";

class Node
{
    public $next;
    public function __construct(public $payload) {}
}
for ($round = 0; $round < 20; $round++) {
    $first = new Node(0);
    $last = $first;
    for ($i = 1; $i < 5000; $i++) { $last->next = new Node("p$i"); $last = $last->next; }
    $last->next = $first; // a cycle for the collector
    unset($first, $last);
}
echo 'cycles ', gc_collect_cycles() >= 0 ? 'collected' : 'none', "\n";
echo 'big ', strlen(str_repeat('z', 40000000)), "\n";
