import { onTestFinished } from 'vitest';
import { ChaosProxy } from '../../src/chaos/chaos-proxy.ts';
import { type FaultOptions, parseFaults } from '../../src/chaos/grammar.ts';
import type { FaultReport } from '../../src/chaos/report.ts';
import { systemTime } from '../../src/lib/time.ts';
import { createUndiciTransport } from '../../src/proxy/upstream/undici-transport.ts';

export interface Chaos {
  readonly url: string;
  readonly proxy: ChaosProxy;
  readonly reports: readonly FaultReport[];
  close(): Promise<void>;
}

interface ChaosFaults extends Partial<FaultOptions> {
  /** By default, every request. */
  readonly share?: number;
  readonly seed?: number;
}

/** Starts a proxy on a free port with these faults. */
export async function openChaos(upstream: string, options: ChaosFaults): Promise<Chaos> {
  const { share = 1, seed = 7, ...given } = options;
  const transport = createUndiciTransport();
  const reports: FaultReport[] = [];
  const proxy = new ChaosProxy({
    upstream: new URL(upstream),
    schedule: { faults: parseFaults({ cut: [], stall: [], error: [], ...given }), share, seed },
    transport,
    time: systemTime,
    onFault: (report) => void reports.push(report),
  });
  const url = await proxy.listen('127.0.0.1', 0);
  const close = async () => {
    await proxy.close();
    await transport.close();
  };
  return { url, proxy, reports, close };
}

/** Like {@link openChaos}, but closes the proxy when the test ends. */
export async function startChaos(upstream: string, options: ChaosFaults): Promise<Chaos> {
  const chaos = await openChaos(upstream, options);
  onTestFinished(() => chaos.close());
  return chaos;
}
