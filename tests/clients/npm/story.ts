// story.ts - what a client that was generated from api/openapi.yaml has to be able to do: acquire, write, expiry, a stale write.

export interface Client {
  acquire(name: string, ttl_ms: number): Promise<string>; // the fencing token
  write(name: string, token: string, body: string): Promise<{ status: number; code?: string; status_line: string | null }>;
  state(name: string): Promise<string>;
}

export async function tell(client: Client, name: string): Promise<void> {
  const first = await client.acquire(name, 1000);
  const written = await client.write(name, first, "first");
  while (await client.state(name) !== "free") await new Promise((resolve) => setTimeout(resolve, 20));
  const expired = await client.write(name, first, "late");
  const second = await client.acquire(name, 60000);
  const stale = await client.write(name, first, "stale");
  const last = await client.write(name, second, "second");
  console.log([written, expired, stale, last].map(({ status, code }) => [status, code].join(" ").trim()).join(", "));
  if (!stale.status_line?.startsWith("pawl; verdict=refused; reason=stale-token;")) throw new Error(`${stale.status_line}`);
}
