// driver.mjs - Chromium for the tests in Python: a line of JSON with code comes in, a line of JSON with what it gave goes out.
//
// The code is the body of an async function of (page, context, browser, arg, state): state is kept, and has what every page
// did that it must not: asked another host, broke its policy, said something on the console.
import readline from 'node:readline';
import { createRequire } from 'node:module';

const [, , modules, ...flags] = process.argv;
const require = createRequire(modules + '/');
const { chromium } = require('playwright-core');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', ...flags] });
const state = { hosts: new Set(), wrong: [], axe: require('axe-core').source };
let context, page;

async function fresh(options = {}) {
  state.hosts.clear();
  state.wrong = [];
  await context?.close();
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light', ...options });
  context.on('request', request => state.hosts.add(new URL(request.url()).host));
  await context.addInitScript(() => addEventListener('securitypolicyviolation', event => console.error('CSP ' + event.violatedDirective + ' ' + event.blockedURI)));
  page = await context.newPage();
  page.setDefaultTimeout(15000);
  page.on('console', message => { if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) state.wrong.push(message.text()); });
  page.on('pageerror', error => state.wrong.length < 20 && state.wrong.push(String(error.stack)));
  return page;
}
state.fresh = fresh;
state.use = tab => { page = tab; };
await fresh();

const AsyncFunction = fresh.constructor;
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { code, arg } = JSON.parse(line);
  let said;
  try {
    said = { ok: await new AsyncFunction('page', 'context', 'browser', 'arg', 'state', code)(page, context, browser, arg, state) ?? null };
  } catch (error) {
    said = { error: String(error.stack || error) };
  }
  process.stdout.write(JSON.stringify(said) + '\n');
}
await browser.close();
