# SPDX-License-Identifier: MIT
# Strings, hashes, threads, fork, garbage collection with compaction, Marshal, JSON, fibers.
require 'digest'
require 'json'
require 'zlib'

source = Random.new(42)
slots = Array.new(1000, '')
200_000.times { |i| slots[source.rand(1000)] = (i % 10).to_s * source.rand(400) }
puts "churn #{Digest::SHA256.hexdigest(slots.join('|'))}"

data = (0...20_000).map do |n|
  { 'id' => n, 'name' => "name #{n * 7 % 1000}", 'tags' => %w[a b c].rotate(n) }
end
text = JSON.generate(data)
back = JSON.parse(text)
puts "json #{text.bytesize} #{back == data}"
puts "marshal #{Digest::SHA256.hexdigest(Marshal.dump(back.first(100)))}"
groups = back.group_by { |d| d['name'] }.transform_values(&:size)
puts "group #{groups.max_by { |k, v| [v, k] }.inspect}"
puts "gsub #{Digest::SHA256.hexdigest(text.gsub(/\d+/) { |d| (d.to_i * 3).to_s })}"
puts "zlib #{Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)) == text}"

threads = (0...4).map do |k|
  Thread.new do
    local = Hash.new { |h, key| h[key] = +'' }
    50_000.times { |i| local[i % 500] << (i + k).to_s }
    Digest::SHA256.hexdigest(local.sort.inspect)
  end
end
threads.each { |t| puts "thread #{t.value}" }
3.times do |k|
  reader, writer = IO.pipe
  pid = fork do
    writer.puts "child #{k} #{(0...50_000).map(&:to_s).join.size}"
    exit!(0)
  end
  Process.wait(pid)
  puts reader.gets
end
GC.compact if GC.respond_to?(:compact)
puts "big #{('z' * 40_000_000).size} #{(3**50_000).to_s.size}"
fibers = (0...2000).map { |i| Fiber.new { Fiber.yield i; i * 2 } }
puts "fibers #{fibers.sum(&:resume)} #{fibers.sum(&:resume)}"
