// hey.ts - what @hey-api/openapi-ts generates.
import { createClient } from "./hey/client";
import { acquireLease, getLease, writeResource } from "./hey/sdk.gen";
import { tell } from "./story";

declare const process: { argv: string[] };
const [, , lease, gateway, name] = process.argv;
const leases = createClient({ baseUrl: lease as string });
const resources = createClient({ baseUrl: gateway as string });

void tell({
  async acquire(name, ttl_ms) {
    const { data, error } = await acquireLease({ client: leases, path: { name }, body: { ttl_ms, holder: "hey" } });
    if (data === undefined) throw new Error(error?.code);
    const token: number = data.token;
    return data.fencing_token.startsWith(`${token};`) ? data.fencing_token : "";
  },
  async write(key, token, body) {
    const { error, response } = await writeResource({
      client: resources, path: { key }, headers: { "Fencing-Token": token, "Content-Type": "text/plain" }, body,
      bodySerializer: (text) => text as string,
    });
    return { status: response.status, code: error?.code, status_line: response.headers.get("Fencing-Status") };
  },
  async state(name) {
    const { data, error } = await getLease({ client: leases, path: { name } });
    if (data === undefined) throw new Error(error?.code);
    return data.state;
  },
}, name as string);
