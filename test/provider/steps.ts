import type { Envelope, EventStream } from './events.ts';
import type { Cut, Fault, Position } from './fault.ts';
import type { ProviderWire } from './wires/wire.ts';

const DEFAULT_EVERY_MS = 100;
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');
const ANTHROPIC_PING = Buffer.from('event: ping\ndata: {"type": "ping"}\n\n');
const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

/** What the provider does to its connection, in order. An answer without a `head` fails before its headers. */
export type Step =
  | { readonly kind: 'head'; readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** One event, or the part of one next to a cut. */
  | { readonly kind: 'send'; readonly bytes: Buffer }
  /** Stays connected for `for_ms`, or else until the client leaves. Sends `sign` every `every_ms`. */
  | { readonly kind: 'hold'; readonly sign?: Buffer; readonly every_ms: number; readonly for_ms?: number }
  /** Announces the end of the HTTP/2 session; the stream continues. */
  | { readonly kind: 'goaway' }
  /** Ends the body properly. */
  | { readonly kind: 'end' }
  | { readonly kind: 'cut'; readonly how: Cut };

/** Faults that happen within an event stream. */
export type StreamFault = Exclude<Fault, { readonly kind: 'status' | 'json_200' | 'html_200' }>;

export const isStreamFault = (fault: Fault): fault is StreamFault =>
  fault.kind !== 'status' && fault.kind !== 'json_200' && fault.kind !== 'html_200';

const END: Step = { kind: 'end' };

/** A stream, or what follows one of its bytes. */
interface Pieces extends Pick<EventStream, 'finished_after'> {
  readonly events: readonly (string | Buffer)[];
}

export function streamSteps(
  stream: Pieces,
  envelope: Envelope,
  fault: StreamFault | null | undefined,
  wire: ProviderWire,
): readonly Step[] {
  const head: Step = { kind: 'head', status: 200, headers: { ...EVENT_STREAM, ...wire.headers } };
  if (!fault) return [head, ...sends(stream.events), END];
  const rest = (events: readonly Step[]) => (isSurvived(fault) ? [...events, END] : []);
  if ('before_headers' in fault.at)
    return [...strike(fault, envelope, wire), ...rest([head, ...sends(stream.events)])];
  const { before, after } = split(stream, fault.at, speaks(fault));
  return [head, ...before, ...strike(fault, envelope, wire), ...rest(after)];
}

/** Whether the rest of the answer follows the fault. */
export function isSurvived(fault: Fault): boolean {
  if (fault.kind === 'goaway_graceful' || fault.kind === 'malformed_event') return true;
  if ('cut' in fault && fault.cut !== undefined) return false;
  return 'for_ms' in fault && fault.for_ms !== undefined;
}

/** What happens when the fault strikes. */
function strike(fault: StreamFault, envelope: Envelope, wire: ProviderWire): Step[] {
  switch (fault.kind) {
    case 'reset':
    case 'fin_in_chunk':
    case 'h2_rst':
    case 'goaway_0_close':
    case 'goaway_error':
    case 'tls_cut':
      return [{ kind: 'cut', how: fault.kind }];
    case 'clean_eof':
      return [END];
    case 'done_without_finish':
      return [...sends(wire.done), END];
    case 'goaway_graceful':
      return [{ kind: 'goaway' }];
    case 'malformed_event':
      return sends([fault.event ?? wire.malformed(envelope)]);
    case 'silence':
    case 'comments':
    case 'pings':
      return [hold(fault, envelope, wire), ...cutAfter(fault)];
    case 'finish_insufficient_system_resource':
    case 'finish_abort':
    case 'finish_overloaded_error':
      return [...sends(wire.badFinish(fault.kind, envelope)), END];
    default:
      return [...sends(wire.errors(fault.kind, envelope, fault.retry_after_s)), END];
  }
}

const cutAfter = (fault: Hold): Step[] =>
  'cut' in fault && fault.cut !== undefined ? [{ kind: 'cut', how: fault.cut }] : [];

type Hold = Extract<StreamFault, { readonly kind: 'silence' | 'comments' | 'pings' }>;

function hold(fault: Hold, envelope: Envelope, wire: ProviderWire): Step {
  const lasting = fault.for_ms === undefined ? {} : { for_ms: fault.for_ms };
  if (fault.kind === 'silence') return { kind: 'hold', every_ms: DEFAULT_EVERY_MS, ...lasting };
  const every_ms = fault.every_ms ?? DEFAULT_EVERY_MS;
  const ping = fault.shape === 'event' ? ANTHROPIC_PING : Buffer.from(wire.ping(envelope));
  return { kind: 'hold', sign: fault.kind === 'comments' ? KEEP_ALIVE : ping, every_ms, ...lasting };
}

/** Whether a fault writes whole lines of its own, which would be lost within a half-written event. */
const speaks = ({ kind }: StreamFault): boolean =>
  /^(error|finish)_/.test(kind) ||
  ['comments', 'pings', 'malformed_event', 'done_without_finish'].includes(kind);

function split(stream: Pieces, at: Position, whole_events: boolean): { before: Step[]; after: Step[] } {
  const bytes = stream.events.map((each) => Buffer.from(each));
  if ('event' in at || 'after_finish' in at) {
    const count = 'event' in at ? at.event : stream.finished_after;
    return { before: sends(bytes.slice(0, count)), after: sends(bytes.slice(count)) };
  }
  let place = 'byte' in at ? at.byte : middleOf(bytes, at.within);
  let whole = 0;
  for (const each of bytes) {
    if (each.length > place) break;
    place -= each.length;
    whole += 1;
  }
  const broken = bytes[whole];
  if (!broken || place === 0 || whole_events) {
    return { before: sends(bytes.slice(0, whole)), after: sends(bytes.slice(whole)) };
  }
  return {
    before: sends([...bytes.slice(0, whole), broken.subarray(0, place)]),
    after: sends([broken.subarray(place), ...bytes.slice(whole + 1)]),
  };
}

/** How many bytes there are up to the middle of this event. */
const middleOf = (events: readonly Buffer[], position: number): number =>
  Buffer.concat(events.slice(0, position)).length + ((events[position]?.length ?? 0) >> 1);

const sends = (pieces: readonly (string | Buffer)[]): Step[] =>
  pieces.map((piece) => ({ kind: 'send', bytes: Buffer.from(piece) }));
