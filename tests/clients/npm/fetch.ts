// fetch.ts - openapi-fetch with the types of openapi-typescript.
import createClient from "openapi-fetch";
import type { paths } from "./schema";
import { tell } from "./story";

declare const process: { argv: string[] };
const [, , lease, gateway, name] = process.argv;
const leases = createClient<paths>({ baseUrl: lease });
const resources = createClient<paths>({ baseUrl: gateway });

void tell({
  async acquire(name, ttl_ms) {
    const { data, error } = await leases.POST("/v1/leases/{name}", { params: { path: { name } }, body: { ttl_ms, holder: "fetch" } });
    if (data === undefined) throw new Error(error.code);
    const token: number = data.token;
    return data.fencing_token.startsWith(`${token};`) ? data.fencing_token : "";
  },
  async write(key, token, body) {
    const { error, response } = await resources.PUT("/v1/resources/{key}", {
      params: { path: { key }, header: { "Fencing-Token": token } }, body, bodySerializer: (text) => text as string,
      headers: { "Content-Type": "text/plain" },
    });
    return { status: response.status, code: error?.code, status_line: response.headers.get("Fencing-Status") };
  },
  async state(name) {
    const { data, error } = await leases.GET("/v1/leases/{name}", { params: { path: { name } } });
    if (data === undefined) throw new Error(error.code);
    return data.state;
  },
}, name as string);
