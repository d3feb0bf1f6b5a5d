import { join } from 'node:path';
import { nextMessage, startScript } from '../processes.ts';
import type { Target } from '../target.ts';

export async function startPipe(upstream_port: number): Promise<Target> {
  const script = startScript(join(import.meta.dirname, 'pipe-proxy.ts'), String(upstream_port));
  const { port } = await nextMessage<{ port: number }>(script);
  return { name: 'pipe', port, pid: script.pid, stop: () => script.stop() };
}
