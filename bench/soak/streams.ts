import { connect } from 'node:net';
import { ResponseReader } from '../response-reader.ts';
import { answerTokens } from './text.ts';

export interface StreamCounts {
  open: number;
  /** Streams that ended with the exact text, one finish and one [DONE]. */
  intact: number;
  readonly broken: string[];
}

/** Keeps a fixed number of streams open, replacing each that ends, until stopped. */
export class Streams {
  readonly counts: StreamCounts = { open: 0, intact: 0, broken: [] };
  readonly #port: number;
  #next = 1;
  #stopped: boolean = false;
  #drained = Promise.withResolvers<void>();

  constructor(port: number) {
    this.#port = port;
  }

  add(count: number): void {
    for (let added = 0; added < count; added += 1) this.#open(this.#next++);
  }

  /** Resolves once all open streams have ended. */
  stop(): Promise<void> {
    this.#stopped = true;
    if (this.counts.open === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  #open(identity: number): void {
    this.counts.open += 1;
    const received = new ReceivedAnswer();
    const reader = new ResponseReader((event) => received.add(event));
    const socket = connect(this.#port, '127.0.0.1', () => socket.write(requestText(identity)));
    let failure: Error | undefined;
    socket.on('data', (bytes) => {
      try {
        reader.feed(bytes);
        if (reader.complete) socket.end();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('close', () => {
      const fault = failure?.message ?? (reader.complete ? received.fault(identity) : 'truncated');
      this.#ended(identity, fault);
    });
  }

  #ended(identity: number, fault: string | undefined): void {
    this.counts.open -= 1;
    if (fault === undefined) this.counts.intact += 1;
    else this.counts.broken.push(`answer ${identity}: ${fault}`);
    if (!this.#stopped) this.add(1);
    else if (this.counts.open === 0) this.#drained.resolve();
  }
}

class ReceivedAnswer {
  #text = '';
  #ending = '';

  add(event: string): void {
    const data = Buffer.from(event.slice(event.indexOf('data: ') + 'data: '.length), 'latin1').toString(
      'utf8',
    );
    if (data === '[DONE]') {
      this.#ending += ' done';
      return;
    }
    const chunk = JSON.parse(data) as {
      error?: { message: string };
      choices?: { delta: { content?: string }; finish_reason: string | null }[];
    };
    const [choice] = chunk.choices ?? [];
    if (chunk.error) this.#ending += ` error "${chunk.error.message}"`;
    this.#text += choice?.delta.content ?? '';
    if (choice?.finish_reason) this.#ending += ` ${choice.finish_reason}`;
  }

  /** Describes what is wrong with the answer, if anything. */
  fault(identity: number): string | undefined {
    const expected = answerTokens(identity).join('');
    if (this.#text !== expected)
      return `text differs ${firstDifference(this.#text, expected)}, ending${this.#ending}`;
    return this.#ending === ' stop done' ? undefined : `ending${this.#ending}`;
  }
}

function firstDifference(text: string, expected: string): string {
  let at = 0;
  while (at < expected.length && text[at] === expected[at]) at += 1;
  const around = (whole: string) => JSON.stringify(whole.slice(Math.max(0, at - 30), at + 30));
  return `at ${at} of ${expected.length}: ${around(text)} instead of ${around(expected)}`;
}

function requestText(identity: number): string {
  const messages = [{ role: 'user', content: String(identity) }];
  const body = JSON.stringify({ model: 'soak', stream: true, messages });
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'host: soak',
    'authorization: Bearer soak',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
