import { isKeyed } from '../config/configuration.ts';
import { systemTime } from '../lib/time.ts';
import { RouteTable } from '../proxy/upstream/route-table.ts';
import { createUndiciTransport } from '../proxy/upstream/undici-transport.ts';
import { CapabilityMemory } from '../proxy/wires/dialects/capability-memory.ts';
import type { DoctorContext } from './doctor-context.ts';
import type { Finding } from './finding.ts';
import { examineMachine, examinePorts } from './machine.ts';
import { examineStore } from './store.ts';
import { examineUpstream } from './upstream.ts';

/** How many upstreams are tested at the same time. */
const UPSTREAMS_AT_ONCE = 8;

type Examined = Omit<DoctorContext, 'transport' | 'capabilities' | 'withheld'>;

/** Tests everything that `serve` would depend on. */
export async function examine(examined: Examined): Promise<Finding[]> {
  const { configuration, connections } = examined;
  const transport = createUndiciTransport(connections);
  const capabilities = new CapabilityMemory(systemTime);
  const context: DoctorContext = { ...examined, transport, capabilities };
  try {
    const machine = examineMachine(configuration);
    const [ports, store, upstreams] = await Promise.all([
      examinePorts(configuration),
      examineStore(configuration),
      examineUpstreams(context),
    ]);
    return [...machine, ...ports, ...store, ...upstreams];
  } finally {
    await transport.close();
  }
}

async function examineUpstreams(context: DoctorContext): Promise<Finding[]> {
  const all = Object.entries(context.configuration.upstreams);
  const findings: Finding[] = [];
  for (let start = 0; start < all.length; start += UPSTREAMS_AT_ONCE) {
    const batch = all.slice(start, start + UPSTREAMS_AT_ONCE);
    const found = await Promise.all(
      batch.map(([name, upstream]) => examineUpstream(withKeyFor(name, context), { name, upstream })),
    );
    findings.push(...found.flat());
  }
  return findings;
}

/** A client's key belongs to one provider: if several have no key, only the one that `--model` leads to gets it. */
function withKeyFor(name: string, context: DoctorContext): DoctorContext {
  const { configuration, client_key, model } = context;
  const keyless = Object.values(configuration.upstreams).filter((upstream) => !isKeyed(upstream));
  const origins = new Set(keyless.map(({ base_url }) => new URL(base_url).origin));
  if (client_key === undefined || origins.size <= 1) return context;
  const target = model === undefined ? undefined : new RouteTable(configuration).target(model);
  return target?.name === name ? context : { ...context, client_key: undefined, withheld: true };
}
