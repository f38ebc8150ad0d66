// uses.cts - the same package by require().
import pawl = require("pawl");

const [, , leaseUrl, gatewayUrl, name] = process.argv as [string, string, string, string, string];
const services: pawl.Pawl = new pawl.Pawl({ leaseUrl, gatewayUrl });
void services.with(name, { ttlMs: 5000 }, async (hold: pawl.Hold) => hold.token > 0).then((told: boolean) => console.log(told));
