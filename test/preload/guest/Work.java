// SPDX-License-Identifier: MIT
// Heap churn, threads, direct buffers, deflate (native memory), parallel streams; prints checksums.
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Work {
    record Item(int id, String name) {}

    static long checksum(byte[] bytes) {
        CRC32 crc = new CRC32();
        crc.update(bytes);
        return crc.getValue();
    }

    static long churn(long seed, int rounds) {
        Random random = new Random(seed);
        byte[][] slots = new byte[1000][];
        long total = 0;
        for (int i = 0; i < rounds; i++) {
            int slot = random.nextInt(1000);
            if (slots[slot] != null) {
                total = total * 31 + checksum(slots[slot]);
            }
            slots[slot] = new byte[random.nextInt(4000)];
            Arrays.fill(slots[slot], (byte)i);
        }
        return total;
    }

    static String deflate(byte[] text) throws Exception {
        StringBuilder result = new StringBuilder();
        for (int level = 1; level <= 9; level += 4) {
            Deflater deflater = new Deflater(level);
            deflater.setInput(text);
            deflater.finish();
            byte[] packed = new byte[text.length];
            int length = deflater.deflate(packed);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, length);
            byte[] opened = new byte[text.length];
            inflater.inflate(opened);
            inflater.end();
            result.append(Arrays.equals(text, opened)).append(' ');
        }
        return result.toString();
    }

    public static void main(String[] words) throws Exception {
        int rounds = words.length > 0 ? 5000 : 100000;
        System.out.println("churn " + churn(42, rounds));
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> futures = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            long seed = i;
            futures.add(pool.submit(() -> churn(seed, rounds / 4)));
        }
        for (Future<Long> future : futures) {
            System.out.println("pool " + future.get());
        }
        pool.shutdown();
        TreeMap<String, Long> groups =
            IntStream.range(0, rounds)
                .parallel()
                .mapToObj(i -> new Item(i, "name " + i % 97))
                .collect(Collectors.groupingBy(Item::name, TreeMap::new, Collectors.counting()));
        System.out.println("groups " + groups.size() + " " + groups.firstEntry());
        ConcurrentHashMap<Integer, String> shared = new ConcurrentHashMap<>();
        IntStream.range(0, rounds).parallel().forEach(
            i -> shared.merge(i % 1000, "x", String::concat));
        System.out.println("shared " + shared.values().stream().mapToInt(String::length).sum());
        long sum = 0;
        for (int i = 0; i < 200; i++) {
            ByteBuffer direct = ByteBuffer.allocateDirect(1 << (i % 18));
            while (direct.remaining() >= 8) {
                direct.putLong(i * 31L);
            }
            direct.flip();
            while (direct.remaining() >= 8) {
                sum += direct.getLong();
            }
        }
        System.out.println("direct " + sum);
        String text =
            IntStream.range(0, rounds).mapToObj(Integer::toString).collect(Collectors.joining(" "));
        System.out.println("deflate " + deflate(text.getBytes()));
        Thread[] threads = new Thread[200];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> churn(7, 20));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("threads done");
    }
}
