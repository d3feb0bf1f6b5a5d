/**
 * The provider as a separate process:
 *
 *     node test/provider/main.ts --scenario scenario.json [--port 0] [--protocol http1|https1|h2c|h2]
 *
 * A scenario is `{"scripts": {"<model>": <plan>, …}}`. Prints one line of JSON once it listens: `{"url", "ca_file"?}`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startProvider } from './provider.ts';
import type { Plan } from './script.ts';
import { PROTOCOLS, type Protocol } from './server.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    protocol: { type: 'string', default: 'http1' },
    scenario: { type: 'string' },
  },
});

if (values.scenario === undefined) throw new Error('--scenario is required: the path of a JSON file');
const scenario = JSON.parse(readFileSync(values.scenario, 'utf8')) as { scripts: Record<string, Plan> };
const provider = await startProvider({
  ...scenario,
  protocol: protocolOf(values.protocol),
  port: Number(values.port),
  record: false,
});
const directory = provider.ca === undefined ? undefined : mkdtempSync(join(tmpdir(), 'provider-'));
const ca_file = directory && join(directory, 'ca.pem');
if (ca_file && provider.ca) writeFileSync(ca_file, provider.ca);
process.stdout.write(`${JSON.stringify({ url: provider.url, ca_file })}\n`);

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());

async function stop(): Promise<void> {
  if (directory) rmSync(directory, { recursive: true });
  await provider.close();
}

function protocolOf(name: string): Protocol {
  const protocol = PROTOCOLS.find((known) => known === name);
  if (!protocol) throw new Error(`--protocol is ${name}; choose one of ${PROTOCOLS.join(', ')}`);
  return protocol;
}
