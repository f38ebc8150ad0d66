// pairs.mjs - redlock of npm: locks and unlocks on the Redis at these ports, for so long; prints a JSON object.
// argv: clients, seconds, seconds before that, ports. $NODE_MODULES is where its packages are.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.NODE_MODULES}/x`);
const Redis = require('ioredis');
const Redlock = require('redlock');
const [clients, seconds, warm, ...ports] = process.argv.slice(2).map(Number);
const redises = ports.map((port) => new Redis(port, '127.0.0.1'));
const redlock = new Redlock(redises);
const us = [];
const begin = performance.now() + warm * 1000;
const end = begin + seconds * 1000;

async function work(who) {
  for (let turn = 0; performance.now() < end; turn += 1) {
    const began = performance.now();
    const lock = await redlock.lock(`job:${who}:${turn % 32}`, 30000);
    await lock.unlock();
    if (began >= begin) us.push(Math.round((performance.now() - began) * 1000));
  }
}

await Promise.all(Array.from({ length: clients }, (_, who) => work(who)));
const cpu = process.cpuUsage();
console.log(JSON.stringify({ us, cpu_s: (cpu.user + cpu.system) / 1e6 }));
redises.forEach((redis) => redis.disconnect());
