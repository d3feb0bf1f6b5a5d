import { type Configuration, isKeyed } from '../config/configuration.ts';
import type { ConnectionSettings } from '../config/load.ts';
import { systemTime } from '../lib/time.ts';
import { type ProbeAnswer, probe } from '../proxy/run/context/probe.ts';
import { type Headers, revivedRequestHeaders } from '../proxy/upstream/headers.ts';
import type { Target } from '../proxy/upstream/target.ts';
import type { Transport } from '../proxy/upstream/transport.ts';
import { chatWire } from '../proxy/wires/chunks/chat-wire.ts';
import type { Wire } from '../proxy/wires/common/wire.ts';
import type { CapabilityMemory } from '../proxy/wires/dialects/capability-memory.ts';

/** What the checks of upstreams share. */
export interface DoctorContext {
  readonly configuration: Configuration;
  readonly connections: Readonly<Record<string, ConnectionSettings>>;
  readonly transport: Transport;
  readonly capabilities: CapabilityMemory;
  /** Sent to an upstream that has no `api_key`, as clients send theirs. */
  readonly client_key: string | undefined;
  /** There is a client's key, but nothing says that it is for this upstream. */
  readonly withheld?: boolean;
  /** As clients name it. */
  readonly model: string | undefined;
  /** Whether requests may be made that cost tokens. */
  readonly requests: boolean;
}

/** `wire`: the one whose providers it is for. */
export function headersFor(
  { client_key }: DoctorContext,
  { upstream }: Target,
  wire: Wire = chatWire,
): Headers {
  if (client_key === undefined) return revivedRequestHeaders({}, upstream, wire);
  const own = wire.keyHeader ? { [wire.keyHeader]: client_key } : { authorization: `Bearer ${client_key}` };
  return revivedRequestHeaders(own, upstream, wire);
}

/** An upstream is asked with a key: its own, or that of a client. */
export const hasKey = ({ client_key }: DoctorContext, { upstream }: Target): boolean =>
  isKeyed(upstream) || client_key !== undefined;

const CONNECT_MAX_MS = 10_000;
const ANSWER_MAX_MS = 45_000;

/** That of the configuration, but a doctor does not wait for a connection as long as a run. */
export const connectLimit_ms = ({ configuration }: DoctorContext, { upstream }: Target): number =>
  Math.min({ ...configuration.clocks, ...upstream.clocks }.connect_ms, CONNECT_MAX_MS);

/** One short answer of an upstream. `base_url`: where the request goes, if not to the upstream's own. */
export const trial = (
  context: DoctorContext,
  target: Target,
  body: object,
  base_url?: string,
): Promise<ProbeAnswer> =>
  probe(
    {
      upstream: target.upstream,
      headers: headersFor(context, target),
      body,
      base_url,
      connect_max_ms: CONNECT_MAX_MS,
      attempt_max_ms: ANSWER_MAX_MS,
    },
    { ...context, time: systemTime },
  );
