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

/** What every check of an upstream needs. */
export interface DoctorContext {
  readonly configuration: Configuration;
  readonly connections: Readonly<Record<string, ConnectionSettings>>;
  readonly transport: Transport;
  readonly capabilities: CapabilityMemory;
  /** A client's key, sent to upstreams without an `api_key`, as a client would. */
  readonly client_key: string | undefined;
  /** A client's key was given, but nothing says that it belongs to this upstream. */
  readonly withheld?: boolean;
  /** The model's name for clients. */
  readonly model: string | undefined;
  /** Whether checks may make requests that cost tokens. */
  readonly requests: boolean;
}

/** `wire` decides which header carries the key of a client. */
export function headersFor(
  { client_key }: DoctorContext,
  { upstream }: Target,
  wire: Wire = chatWire,
): Headers {
  if (client_key === undefined) return revivedRequestHeaders({}, upstream, wire);
  const own = wire.keyHeader ? { [wire.keyHeader]: client_key } : { authorization: `Bearer ${client_key}` };
  return revivedRequestHeaders(own, upstream, wire);
}

/** Whether requests to this upstream carry a key: its own, or a client's. */
export const hasKey = ({ client_key }: DoctorContext, { upstream }: Target): boolean =>
  isKeyed(upstream) || client_key !== undefined;

const CONNECT_MAX_MS = 10_000;
const ANSWER_MAX_MS = 45_000;

/** The configured limit, but the doctor doesn't wait as long for a connection as a run may. */
export const connectLimit_ms = ({ configuration }: DoctorContext, { upstream }: Target): number =>
  Math.min({ ...configuration.clocks, ...upstream.clocks }.connect_ms, CONNECT_MAX_MS);

/** Asks an upstream for one short answer. `base_url`: where to send the request, if not to the upstream's own address. */
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
