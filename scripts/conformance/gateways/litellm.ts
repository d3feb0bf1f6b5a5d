import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startProgram, untilHttpOk } from '../../../bench/processes.ts';
import { type CachedProgram, cachedDirectory } from '../../../test/cached-program.ts';
import { keptPort } from '../../../test/kept-port.ts';
import { type GatewayUnderTest, pathOf } from '../gateway.ts';

const VERSION = '1.108.7';
/** The Python imports take long. */
const PATIENCE_MS = 180_000;

/** A virtual environment with LiteLLM, or the reason why this machine has none. */
export const installedLitellm = (): Promise<CachedProgram> =>
  cachedDirectory('holdfast-conformance', `litellm-${VERSION}`, 'LiteLLM', async (venv) => {
    await promisify(execFile)('python3', ['-m', 'venv', venv]);
    const words = ['-m', 'pip', 'install', '--disable-pip-version-check', '--quiet'];
    await promisify(execFile)(join(venv, 'bin/python'), [...words, `litellm[proxy]==${VERSION}`]);
  });

/** Starts LiteLLM with a configuration file. `directory` is for its log, `environment` for variables in the file. */
export async function startLitellm(
  venv: string,
  configuration: string,
  directory: string,
  environment: Readonly<Record<string, string>> = {},
) {
  // A port that was merely free could be taken by another process, because the start takes so long.
  const port = await keptPort([]);
  // LiteLLM refuses to start without a key, and refuses requests without it.
  const key = `sk-${randomUUID()}`;
  const words = [
    ...['-m', 'litellm.proxy.proxy_cli', '--config', configuration],
    ...['--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False'],
  ];
  // The venv's own command may not work: it contains the path where the environment was created, before it was moved.
  const running = startProgram(join(venv, 'bin/python'), words, join(directory, 'litellm.log'), {
    ...{ LITELLM_MASTER_KEY: key, LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    ...environment,
  });
  await untilHttpOk(`http://127.0.0.1:${port}/health/liveliness`, running, PATIENCE_MS);
  return { url: `http://127.0.0.1:${port}`, key, stop: () => running.stop() };
}

export const LITELLM: GatewayUnderTest = {
  name: 'LiteLLM',
  version: VERSION,
  configuration:
    '[`litellm.yaml`](../scripts/conformance/gateways/litellm.yaml): retries, a fallback, timeouts, keep-alives',
  async start(provider_port, directory) {
    const venv = pathOf(await installedLitellm());
    const configuration = join(directory, 'litellm.yaml');
    const text = readFileSync(join(import.meta.dirname, 'litellm.yaml'), 'utf8');
    writeFileSync(configuration, text.replaceAll('PROVIDER_PORT', String(provider_port)));
    const { url, key, stop } = await startLitellm(venv, configuration, directory);
    return { words: ['--base-url', url, '--api-key', key], stop };
  },
};
