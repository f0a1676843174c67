// SPDX-License-Identifier: MIT
// Heap churn, threads, direct buffers, deflate (native memory), parallel streams; prints checksums.
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import java.util.zip.*;

public class Work {
    record Item(int id, String name) {}

    static long churn(long seed, int rounds) {
        Random random = new Random(seed);
        byte[][] slots = new byte[1000][];
        long total = 0;
        for (int i = 0; i < rounds; i++) {
            int slot = random.nextInt(1000);
            if (slots[slot] != null) {
                CRC32 crc = new CRC32();
                crc.update(slots[slot]);
                total = total * 31 + crc.getValue();
            }
            slots[slot] = new byte[random.nextInt(4000)];
            Arrays.fill(slots[slot], (byte)i);
        }
        return total;
    }

    static boolean deflates(byte[] text, int level) throws Exception {
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
        return Arrays.equals(text, opened);
    }

    static long direct(int i) {
        ByteBuffer direct = ByteBuffer.allocateDirect(1 << (i % 18));
        while (direct.remaining() >= 8) {
            direct.putLong(i * 31L);
        }
        direct.flip();
        return direct.hasRemaining() ? direct.getLong() : 0;
    }

    public static void main(String[] words) throws Exception {
        int rounds = words.length > 0 ? 5000 : 100000;
        System.out.println("churn " + churn(42, rounds));
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Callable<Long>> tasks = new ArrayList<>();
        for (long i = 0; i < 8; i++) {
            long seed = i;
            tasks.add(() -> churn(seed, rounds / 4));
        }
        for (Future<Long> future : pool.invokeAll(tasks)) {
            System.out.println("pool " + future.get());
        }
        pool.shutdown();
        var groups = IntStream.range(0, rounds).parallel()
            .mapToObj(i -> new Item(i, "name " + i % 97))
            .collect(Collectors.groupingBy(Item::name, TreeMap::new, Collectors.counting()));
        System.out.println("groups " + groups.size() + " " + groups.firstEntry());
        System.out.println("direct " + IntStream.range(0, 200).mapToLong(Work::direct).sum());
        String text =
            IntStream.range(0, rounds).mapToObj(Integer::toString).collect(Collectors.joining(" "));
        for (int level = 1; level <= 9; level += 4) {
            System.out.println("deflate " + deflates(text.getBytes(), level));
        }
        Thread[] threads = new Thread[200];
        Arrays.setAll(threads, i -> new Thread(() -> churn(7, 20)));
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
