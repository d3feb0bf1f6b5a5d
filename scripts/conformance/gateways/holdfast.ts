import { join } from 'node:path';
import { freePort, startProgram, untilHttpOk } from '../../../bench/processes.ts';
import { CLI_PATH } from '../../../bench/proxies/holdfast.ts';
import manifest from '../../../package.json' with { type: 'json' };
import type { GatewayUnderTest } from '../gateway.ts';

export const HOLDFAST: GatewayUnderTest = {
  name: 'Holdfast',
  version: manifest.version,
  configuration: '[`holdfast.yaml`](../scripts/conformance/gateways/holdfast.yaml): defaults, two targets',
  async start(provider_port, directory) {
    const [port, admin_port] = [await freePort(), await freePort()];
    const words = [
      ...[CLI_PATH, 'serve', '--config', join(import.meta.dirname, 'holdfast.yaml')],
      ...[
        '--port',
        String(port),
        '--admin-port',
        String(admin_port),
        '--store',
        `file:${join(directory, 'store')}`,
      ],
    ];
    const environment = { PROVIDER_PORT: String(provider_port) };
    const running = startProgram(process.execPath, words, join(directory, 'holdfast.log'), environment);
    await untilHttpOk(`http://127.0.0.1:${admin_port}/readyz`, running);
    return { words: ['--base-url', `http://127.0.0.1:${port}`], stop: () => running.stop() };
  },
};
