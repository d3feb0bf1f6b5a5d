import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { StepReader } from '../../src/chaos/answer-step.ts';
import type { WireName } from '../../src/checkpoint/journal.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import { startProvider } from '../http-peer.ts';
import { PROVIDER_WIRES, wireAt } from '../provider/wires/registry.ts';
import { scriptedDocument, scriptedEvents } from './scripted-answer.ts';

const EVENT_BYTES_MAX = 65_536;

/** The text that the client has read so far. */
export class Read {
  text = '';
  readonly #changes = new EventEmitter();

  add(text: string | null | undefined): void {
    this.text += text ?? '';
    this.#changes.emit('change');
  }

  get characters(): number {
    return this.text.length;
  }

  async until(characters: number): Promise<void> {
    while (this.characters < characters) await once(this.#changes, 'change');
  }
}

/**
 * Starts a provider that sends each event of the scripted answer only after the client has read all earlier ones, so
 * that a reset can't discard events still in flight. Returns its base URL.
 */
export async function startPacedProvider(read: Read): Promise<string> {
  const url = await startProvider((request, response) => void answer(request, response, read));
  return `${url}/v1`;
}

async function answer(request: IncomingMessage, response: ServerResponse, read: Read): Promise<void> {
  const wire = wireAt(request.url ?? '');
  if (!wire) throw new Error(`no answer to ${request.url}`);
  const { stream } = (await json(request)) as { readonly stream?: boolean };
  if (stream) return tell(wire, response, read);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(scriptedDocument(wire));
}

async function tell(wire: WireName, response: ServerResponse, read: Read): Promise<void> {
  const steps = new StepReader(WIRES[wire], EVENT_BYTES_MAX);
  response.writeHead(200, { 'content-type': 'text/event-stream', ...PROVIDER_WIRES[wire].headers });
  let characters = 0;
  for (const event of scriptedEvents(wire)) {
    await read.until(characters);
    response.write(event);
    characters += steps.read(Buffer.from(event)).characters;
  }
  response.end();
}
