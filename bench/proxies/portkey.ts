import { join } from 'node:path';
import { freePort, startProgram, untilHttpOk } from '../processes.ts';
import type { Target } from '../target.ts';

/** Names the folder of the unpacked package, which isn't a dependency of this project. */
export const PORTKEY_VARIABLE = 'HOLDFAST_BENCH_PORTKEY';

/** `package_path`: the folder of `@portkey-ai/gateway`. */
export async function startPortkey(package_path: string, directory: string) {
  const port = await freePort();
  const words = [join(package_path, 'build/start-server.js'), `--port=${port}`, '--headless'];
  const running = startProgram(process.execPath, words, join(directory, 'portkey.log'));
  await untilHttpOk(`http://127.0.0.1:${port}/`, running);
  return { port, pid: running.pid, stop: () => running.stop() };
}

export async function portkeyTarget(
  package_path: string,
  upstream_port: number,
  directory: string,
): Promise<Target> {
  return {
    name: 'portkey',
    ...(await startPortkey(package_path, directory)),
    headers: {
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${upstream_port}/v1`,
    },
  };
}
