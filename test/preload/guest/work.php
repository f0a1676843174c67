<?php
// SPDX-License-Identifier: MIT
// Arrays, strings, regular expressions, sorting, JSON, serialisation, generators, cycles.
mt_srand(42);
$slots = array_fill(0, 1000, '');
for ($i = 0; $i < 200000; $i++) {
    $slots[mt_rand(0, 999)] = str_repeat(chr(65 + $i % 26), mt_rand(0, 400));
}
echo 'churn ', sha1(implode('|', $slots)), "\n";
$tree = [];
for ($i = 0; $i < 50000; $i++) {
    $tree['k' . ($i % 997)][$i % 13][] = ['id' => $i, 'name' => "name $i"];
}
$json = json_encode($tree);
echo 'json ', strlen($json), ' ', json_decode($json, true) == $tree ? 'same' : 'differs', "\n";
echo 'serialize ', sha1(serialize(unserialize(serialize($tree)))), "\n";
echo 'regex ', sha1(preg_replace('/(\d)(\d)/', '$2$1', $json)), "\n";
usort($slots, fn($a, $b) => strlen($a) <=> strlen($b) ?: strcmp($a, $b));
echo 'sort ', sha1(implode(',', $slots)), "\n";

function numbers(int $n)
{
    for ($i = 0; $i < $n; $i++) {
        yield "n$i" => str_repeat('x', $i % 100);
    }
}
echo 'generator ', strlen(implode(array_keys(iterator_to_array(numbers(100000))))), "\n";

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
echo 'big ', gc_collect_cycles() >= 0, strlen(str_repeat('z', 40000000)), "\n";
