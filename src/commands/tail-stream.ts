import type { WireName } from '../checkpoint/journal.ts';
import type { RunId } from '../checkpoint/store.ts';
import { WIRES } from '../proxy/wires/registry.ts';
import { type AnswerOutput, failureIn, jsonAnswer, TextAnswer } from './answer-output.ts';
import { CommandFailure } from './command.ts';
import { eventsOf } from './event-stream.ts';
import { Reconnection } from './reconnection.ts';
import type { ReplicaPort } from './replica-port.ts';
import { askForRun } from './run-status-document.ts';

/** What is brought of an answer so that it goes on behind a checkpoint that is not as far. */
const TAIL_CHARACTERS_MAX = 1_048_576;
const OPEN_MAX_MS = 30_000;

/** Prints a run from its beginning to its end, as its owner, however often the connection breaks. */
export async function tailStream(api: ReplicaPort, run: RunId, json: boolean): Promise<void> {
  const { wire: name } = await askForRun(api, run);
  const wire = WIRES[(name ?? 'chat_completions') as WireName];
  if (!wire) throw new CommandFailure(`the run is on a wire that this release does not know: ${name}.`);
  const output: AnswerOutput = json ? jsonAnswer : new TextAnswer(wire, process.stdout, process.stderr);
  const received = new ReceivedTail();
  const reconnection = new Reconnection();
  for (;;) {
    let broken: unknown;
    try {
      const closing = new AbortController();
      const response = await openStream(api, run, received, closing);
      for await (const { data } of eventsOf(response, closing)) {
        reconnection.succeeded();
        const seq = received.add(data);
        output.add(seq, data);
        const end = wire.delivered.endOf(data);
        if (end === undefined) continue;
        output.end();
        if (end === 'error') throw new CommandFailure(`${run}: ${failureIn(data)}`);
        process.stderr.write(`${run} is complete, ${seq} events\n`);
        return;
      }
    } catch (error) {
      broken = error;
    }
    await reconnection.after(broken);
  }
}

/** What was received last, as the replica compares it with what it has. */
class ReceivedTail {
  seq = 0;
  readonly payloads: string[] = [];
  #characters = 0;

  /** The ordinal of the event. */
  add(payload: string): number {
    this.payloads.push(payload);
    this.#characters += payload.length;
    while (this.#characters > TAIL_CHARACTERS_MAX && this.payloads.length > 1)
      this.#characters -= this.payloads.shift()?.length ?? 0;
    return ++this.seq;
  }
}

function openStream(
  api: ReplicaPort,
  run: RunId,
  { seq, payloads }: ReceivedTail,
  closing: AbortController,
): Promise<Response> {
  const path = `/holdfast/v1/runs/${run}`;
  const opening = setTimeout(() => closing.abort(new Error('the stream did not begin')), OPEN_MAX_MS);
  const opened =
    seq === 0
      ? api.open(`${path}/stream`, { signal: closing.signal })
      : api.open(`${path}/resume`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ cursor: seq, tail: payloads }),
          signal: closing.signal,
        });
  return opened.finally(() => clearTimeout(opening));
}
