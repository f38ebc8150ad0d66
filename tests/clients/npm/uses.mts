// uses.mts - what a program in TypeScript does with the package pawl.
import { Hold, Pawl, PawlError, PawlHeld, PawlLost, PawlNotDone, PawlUnknown, Session } from "pawl";

const [, , leaseUrl, gatewayUrl, name] = process.argv as [string, string, string, string, string];
const pawl = new Pawl({ leaseUrl, gatewayUrl });
const session: Session = await pawl.session({ ttlMs: 5000, onLost: (_: Session, error: PawlLost) => { throw error; } });
const hold: Hold = await session.acquire(name, { waitMs: 1000, onLost: (lost: Hold) => console.log(lost.name) });
const etag: string | null = await hold.put(name, Buffer.from("typed"), { contentType: "text/plain" });
const both: Hold[] = await pawl.acquireAll([`${name}-1`, `${name}-2`]);
const token: number = hold.token;
const events = pawl.events(name, { since: "00.1.1.1" });
const done: boolean | undefined = (await events.return()).done;
const refused: unknown = await pawl.acquire(name).catch((error: unknown) => error);
const held = refused instanceof PawlHeld && refused instanceof PawlError && refused.holder === hold.holder;
const others = [PawlNotDone, PawlUnknown].some((kind) => refused instanceof kind);
console.log([done, token > 0, etag !== null, both.length, held, others, (await pawl.get(name)).body.toString()].join(" "));
for (const one of both) await one.release();
await session.release();
// @ts-expect-error: a ttl is a number
void pawl.acquire(name, { ttlMs: "30s" }).catch(() => {});
