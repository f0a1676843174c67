// SPDX-License-Identifier: MIT
// Objects, buffers outside the JS heap, zlib and crypto in the thread pool, workers, a child, an
// HTTP round trip.
'use strict';
const crypto = require('crypto');
const http = require('http');
const zlib = require('zlib');
const {promisify} = require('util');
const {execFileSync} = require('child_process');
const {Worker, isMainThread, parentPort, workerData} = require('worker_threads');

const digest = (data) => crypto.createHash('sha256').update(data).digest('hex').slice(0, 16);
const each = (list, make) => Promise.all(list.map(make));
let state = 42;
const rnd = (n) => (state = (state * 48271) % 2147483647) % n;

function churn(rounds) {
  const slots = new Array(1000).fill(Buffer.alloc(0));
  for (let i = 0; i < rounds; i++) {
    slots[rnd(1000)] = Buffer.alloc(rnd(i % 100 === 0 ? 200000 : 4000), i & 255);
  }
  return digest(Buffer.concat(slots));
}

async function main() {
  console.log('churn', churn(50000));
  const data =
      Array.from({length: 30000}, (_, n) => ({id: n, name: `name ${n % 977}`, list: [n, n * 2]}));
  const text = JSON.stringify(data);
  console.log('json', text.length, digest(JSON.stringify(JSON.parse(text))));
  console.log('regex', text.replace(/name (\d+)/g, (_, d) => `n${d * 2}`).length);

  const packed = await each([1, 6, 9], (level) => promisify(zlib.gzip)(text, {level}));
  const opened = await each(packed, (p) => promisify(zlib.gunzip)(p));
  console.log('zlib', opened.map(digest).join(' '));
  const brotli = await promisify(zlib.brotliCompress)(text.slice(0, 300000));
  console.log('brotli', digest(await promisify(zlib.brotliDecompress)(brotli)));
  const key = (n) => promisify(crypto.pbkdf2)('word', `salt ${n}`, 2000, 32, 'sha256');
  console.log('pbkdf2', (await each([1, 2, 3, 4], key)).map(digest).join(' '));
  console.log('workers', await each([1, 2, 3, 4], (seed) => new Promise((resolve, reject) => {
    new Worker(__filename, {workerData: seed}).on('message', resolve).on('error', reject);
  })));
  const words = ['-e', 'console.log("x".repeat(100000).length)'];
  console.log('child', execFileSync(process.execPath, words).toString().trim());

  const server = http.createServer((request, response) => request.pipe(response));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const how = {port: server.address().port, host: '127.0.0.1', method: 'POST', agent: false};
  const echoes = await each([...Array(50).keys()], (n) => new Promise((resolve, reject) => {
    const request = http.request(how, async (response) => {
      let length = 0;
      for await (const part of response) length += part.length;
      resolve(length);
    });
    request.on('error', reject);
    request.end(Buffer.alloc(n * 5000, 'e'));
  }));
  console.log('http', echoes.reduce((a, b) => a + b));
  server.close();
}

if (isMainThread) {
  main();
} else {
  state = workerData;
  parentPort.postMessage(churn(10000));
}
