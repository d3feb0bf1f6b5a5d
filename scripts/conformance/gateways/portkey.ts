import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startPortkey } from '../../../bench/proxies/portkey.ts';
import { type CachedProgram, cachedDirectory } from '../../../test/cached-program.ts';
import { type GatewayUnderTest, pathOf } from '../gateway.ts';

const PACKAGE = '@portkey-ai/gateway';
const VERSION = '1.15.2';
/** Its version range allows later versions, with which every streamed request on Node 24 gets a 500. */
const OVERRIDES = { '@hono/node-server': '1.13.8' };

/** The directory of the Portkey package, or the reason why this machine has none. */
export async function installedPortkey(): Promise<CachedProgram> {
  const project = await cachedDirectory('holdfast-conformance', `portkey-${VERSION}`, 'Portkey', install);
  return 'missing' in project ? project : { path: join(project.path, 'node_modules', PACKAGE) };
}

async function install(prefix: string): Promise<void> {
  const manifest = { private: true, dependencies: { [PACKAGE]: VERSION }, overrides: OVERRIDES };
  writeFileSync(join(prefix, 'package.json'), JSON.stringify(manifest));
  const words = ['install', '--prefix', prefix, '--no-audit', '--no-fund', '--ignore-scripts'];
  await promisify(execFile)('npm', words);
}

export const PORTKEY: GatewayUnderTest = {
  name: 'Portkey',
  version: VERSION,
  configuration:
    '[`portkey.json`](../scripts/conformance/gateways/portkey.json): retries, a fallback, a timeout',
  async start(provider_port, directory) {
    const portkey = await startPortkey(pathOf(await installedPortkey()), directory);
    const header = (wire: string, provider: string) => [
      `--${wire}-header`,
      `x-portkey-config: ${configuration(provider, provider_port)}`,
    ];
    return {
      words: [
        ...['--base-url', `http://127.0.0.1:${portkey.port}`],
        ...header('chat', 'openai'),
        ...header('messages', 'anthropic'),
        ...header('responses', 'openai'),
      ],
      stop: () => portkey.stop(),
    };
  },
};

/** On one line, because it's sent as a header. */
function configuration(provider: string, port: number): string {
  const text = readFileSync(join(import.meta.dirname, 'portkey.json'), 'utf8');
  return JSON.stringify(
    JSON.parse(text.replaceAll('PROVIDER_PORT', String(port)).replaceAll('"PROVIDER"', `"${provider}"`)),
  );
}
