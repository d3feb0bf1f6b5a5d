import type { JournalEvent } from '../../../src/checkpoint/journal.ts';
import { PauseWatch } from '../../../src/lib/pause-watch.ts';
import { OutputGate, type OutputGateOptions } from '../../../src/proxy/run/output-gate.ts';
import { factsOf } from '../../../src/proxy/wires/chunks/chat-request.ts';
import { chatWire } from '../../../src/proxy/wires/chunks/chat-wire.ts';
import type { ChatRequest } from '../../../src/proxy/wires/common/request.ts';
import { RecordingClient } from '../../simulation/recording-client.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

export const LEASE_MS = 1000;
const REQUEST: ChatRequest = { model: 'm', messages: [], stream: true };

/** The output of a run to a client that records it. The journal stores everything at once, unless `journal` differs. */
export function outputGate(journal: Partial<OutputGateOptions['journal']> = {}) {
  const time = new VirtualTime();
  const client = new RecordingClient();
  const events: JournalEvent[] = [];
  const output = new OutputGate({
    wire: chatWire,
    client,
    time,
    events: 'none',
    facts: factsOf(REQUEST),
    headers: () => ({}),
    journal: {
      record: (event) => events.push(event),
      stored: async () => {},
      flush: async () => true,
      proven: async () => true,
      confirmed_ms: 0,
      ...journal,
    },
    pauses: new PauseWatch(time, LEASE_MS / 3),
    onUnproven: () => {},
    checkpoint: { durability: 'interval', lease_ms: LEASE_MS },
    keepalive_ms: 15_000,
  });
  const reader = chatWire.reader(() => 0, REQUEST);
  const show = (data: string) => {
    const event = reader.read({ data });
    if (event.kind !== 'answer') throw new Error('no chunk');
    output.show(event.deltas, event, true);
  };
  return { time, client, events, output, show };
}
