import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, startProgram, untilHttpOk } from '../../../bench/processes.ts';
import { cached } from '../cached.ts';
import type { GatewayUnderTest } from '../gateway.ts';

const VERSION = '1.108.7';
/** Python imports for a while. */
const PATIENCE_MS = 180_000;

export const LITELLM: GatewayUnderTest = {
  name: 'LiteLLM',
  version: VERSION,
  configuration:
    '[`litellm.yaml`](../scripts/conformance/gateways/litellm.yaml): retries, a fallback, timeouts, keep-alives',
  async start(provider_port, directory) {
    const installed = await cached(`litellm-${VERSION}`, async (venv) => {
      await promisify(execFile)('python3', ['-m', 'venv', venv]);
      const words = [
        '-m',
        'pip',
        'install',
        '--disable-pip-version-check',
        '--quiet',
        `litellm[proxy]==${VERSION}`,
      ];
      await promisify(execFile)(join(venv, 'bin/python'), words);
    });
    const configuration = join(directory, 'litellm.yaml');
    const text = readFileSync(join(import.meta.dirname, 'litellm.yaml'), 'utf8');
    writeFileSync(configuration, text.replaceAll('PROVIDER_PORT', String(provider_port)));
    const port = await freePort();
    // It refuses to start without one, and requests without it.
    const key = `sk-${randomUUID()}`;
    const words = [
      ...['-m', 'litellm.proxy.proxy_cli', '--config', configuration],
      ...['--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False'],
    ];
    const environment = { LITELLM_MASTER_KEY: key, LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
    // Not by the command: a virtual environment that was moved has the paths of its first place in its commands.
    const running = startProgram(
      join(installed, 'bin/python'),
      words,
      join(directory, 'litellm.log'),
      environment,
    );
    await untilHttpOk(`http://127.0.0.1:${port}/health/liveliness`, running, PATIENCE_MS);
    return {
      words: ['--base-url', `http://127.0.0.1:${port}`, '--api-key', key],
      stop: () => running.stop(),
    };
  },
};
