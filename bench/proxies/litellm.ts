import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startProgram, untilHttpOk } from '../processes.ts';
import type { Target } from '../target.ts';

/** LiteLLM's Python imports take a while. */
const PATIENCE_MS = 120_000;

export async function startLitellm(
  program: string,
  upstream_port: number,
  directory: string,
): Promise<Target> {
  const port = await freePort();
  const configuration = join(directory, 'litellm.yaml');
  writeFileSync(configuration, configurationText(upstream_port));
  const words = ['--config', configuration, '--host', '127.0.0.1', '--port', String(port)];
  // LiteLLM requires a key, both to start and on each request.
  const key = `sk-${randomUUID()}`;
  const running = startProgram(program, words, join(directory, 'litellm.log'), { LITELLM_MASTER_KEY: key });
  await untilHttpOk(`http://127.0.0.1:${port}/health/liveliness`, running, PATIENCE_MS);
  return {
    name: 'litellm',
    port,
    pid: running.pid,
    headers: { authorization: `Bearer ${key}` },
    stop: () => running.stop(),
  };
}

function configurationText(upstream_port: number): string {
  return `model_list:
  - model_name: bench
    litellm_params:
      model: openai/bench
      api_base: http://127.0.0.1:${upstream_port}/v1
      api_key: bench
`;
}
