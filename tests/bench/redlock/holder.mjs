// holder.mjs - a worker that locks with redlock of npm and writes into a Redis: what hazards orders on standard input, a line each,
// answered with yes or no. argv: its name, ttl in ms, socket of the resource, sockets of the nodes.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.env.NODE_MODULES}/x`);
const Redis = require('ioredis');
const Redlock = require('redlock');
const [name, ttl, resource, ...nodes] = process.argv.slice(2);
const connect = (path) => new Redis(path, { retryStrategy: () => 20 }).on('error', () => {});
const written = connect(resource);
const redlock = new Redlock(nodes.map(connect), { retryCount: 0 });
let lock;
redlock.on('clientError', () => {});

const orders = {
  lock: async () => { lock = await redlock.lock('job', Number(ttl)); },
  look: async () => { if (Date.now() >= lock.expiration) throw new Error('over'); },
  write: () => written.set('written', name),
  unlock: () => lock.unlock(),
};
for await (const order of createInterface({ input: process.stdin })) {
  console.log(await orders[order]().then(() => 'yes', () => 'no'));
}
process.exit();
