import { callSignature } from '../provider/call-signature.ts';
import { readFrames } from './frames.ts';
import { emptyReading, type StreamReading, settleCalls } from './reading.ts';

export type { StreamReading } from './reading.ts';

interface Choice {
  readonly index: number;
  readonly delta: Delta;
  /** Replaces the delta on `/v1/completions`. */
  readonly text?: string;
  readonly finish_reason: string | null;
  /** Kimi reports usage here. */
  readonly usage?: Record<string, unknown>;
}

interface Delta extends Record<string, unknown> {
  readonly role?: unknown;
  readonly tool_calls?: readonly Fragment[] | null;
}

interface Fragment {
  readonly index: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
  readonly extra_content?: { readonly google?: { readonly thought_signature?: string } };
}

interface Chunk {
  readonly id?: string;
  readonly created?: number;
  readonly model?: string;
  readonly object?: string;
  readonly choices?: readonly Choice[];
  readonly usage?: Record<string, unknown> | null;
  readonly error?: Record<string, unknown>;
  readonly holdfast?: Record<string, unknown>;
}

export interface ReadingOptions {
  /** Fragments of tool calls may be cancelled. */
  readonly live?: boolean;
  /** The provider reports its usage so far in every chunk. */
  readonly reportsAlong?: boolean;
}

/** Reads a body of `/v1/chat/completions` or `/v1/completions` as strictly as the strictest SDK. */
export function readStream(body: string, options: ReadingOptions = {}): StreamReading {
  return new ChunkStream(options).read(body);
}

class ChunkStream {
  readonly #live: boolean;
  readonly #reportsAlong: boolean;
  readonly #reading = emptyReading();
  readonly #cancelled = new Set<object>();
  #first: Chunk | undefined;
  #events = 0;
  #roles = 0;

  constructor({ live = false, reportsAlong = false }: ReadingOptions) {
    this.#live = live;
    this.#reportsAlong = reportsAlong;
  }

  read(body: string): StreamReading {
    const reading = this.#reading;
    reading.events = readFrames(body, {
      take: (event, name) => {
        if (name !== undefined) this.#complain(`an event with the name ${name}`);
        this.#events++;
        this.#take(event as Chunk | '[DONE]');
      },
      advise: (advisory) => this.#advise(advisory),
      complain: (what) => this.#complain(what),
    });
    settleCalls(reading, this.#cancelled, this.#live);
    if (reading.events > 0 && this.#roles !== 1 && !(reading.error && reading.events === 1))
      this.#complain(`${this.#roles} roles`);
    if (reading.error && (reading.done || reading.finish !== undefined))
      this.#complain('an error beside a finish or [DONE]');
    if (reading.done && reading.finish === undefined) this.#complain('[DONE] without a finish reason');
    return reading;
  }

  #take(chunk: Chunk | '[DONE]'): void {
    const reading = this.#reading;
    if (reading.done) this.#complain('an event after [DONE]');
    if (reading.error) this.#complain('an event after the error');
    if (chunk === '[DONE]') {
      reading.done = true;
    } else if (chunk.error) {
      reading.error = chunk.error;
    } else if (Array.isArray(chunk.choices)) {
      this.#compare(chunk);
      const [choice] = chunk.choices as readonly Choice[];
      this.#report(chunk.usage ?? choice?.usage);
      if (chunk.holdfast) this.#advise(chunk.holdfast);
      if (choice) this.#takeChoice(choice, chunk.object === 'text_completion');
    } else {
      this.#complain('an event without choices');
    }
  }

  #compare(chunk: Chunk): void {
    if (this.#events === 1) this.#first = chunk;
    for (const field of ['id', 'created', 'model'] as const) {
      const first = this.#first?.[field];
      if (chunk[field] !== first) this.#complain(`${field} changed from ${first} to ${chunk[field]}`);
    }
  }

  #report(usage: Record<string, unknown> | null | undefined): void {
    if (!usage) return;
    const before = this.#reading.usage;
    if (before && !this.#reportsAlong) this.#complain('a second usage report');
    if (before && Number(usage.completion_tokens) < Number(before.completion_tokens))
      this.#complain(`after ${before.completion_tokens} tokens there were ${usage.completion_tokens}`);
    this.#reading.usage = usage;
  }

  #takeChoice({ delta: said, text, finish_reason }: Choice, isText: boolean): void {
    const reading = this.#reading;
    if (isText && said !== undefined) this.#complain('a delta in a completion');
    const delta: Delta = isText ? { content: text } : said;
    if (isText) this.#roles = 1;
    // Some servers include empty fields in every delta.
    const says = Object.entries(delta).some(
      ([field, value]) => field !== 'role' && value !== '' && value !== null,
    );
    if (reading.finish !== undefined && says) this.#complain('content after the finish reason');
    if (delta.role) {
      this.#roles++;
      if (this.#events !== 1) this.#complain('a role after the first chunk');
    }
    this.#takeContent(delta.content);
    if (typeof delta.refusal === 'string') reading.refusal += delta.refusal;
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (typeof reasoning === 'string') reading.reasoning += reasoning;
    for (const fragment of delta.tool_calls ?? []) this.#takeFragment(fragment);
    if (finish_reason) {
      if (reading.finish !== undefined) this.#complain('a second finish reason');
      reading.finish = finish_reason;
    }
  }

  /** The content is text, or a list of parts as Mistral sends it. */
  #takeContent(content: unknown): void {
    if (typeof content === 'string') this.#reading.text += content;
    if (!Array.isArray(content)) return;
    for (const { text, thinking } of content as { text?: string; thinking?: { text: string }[] }[]) {
      this.#reading.text += text ?? '';
      this.#reading.reasoning += (thinking ?? []).map((thought) => thought.text).join('');
    }
  }

  #takeFragment({ index, id, type, function: said, extra_content }: Fragment): void {
    const { toolCalls, signed } = this.#reading;
    const known = toolCalls[index];
    if (known) {
      if (id !== undefined || said?.name !== undefined) this.#complain('a tool index was used again');
      known.arguments += said?.arguments ?? '';
      return;
    }
    if (index !== toolCalls.length) this.#complain(`tool index ${index} is not the next one`);
    if (!id || !said?.name || type !== 'function') this.#complain('a call without identity');
    toolCalls.push({ id: id ?? '', name: said?.name ?? '', arguments: said?.arguments ?? '' });
    const signature = extra_content?.google?.thought_signature;
    if (signature === undefined) return;
    if (signature !== callSignature(id ?? '')) this.#complain(`${id} has the signature of another`);
    signed.push(id ?? '');
  }

  #advise(advisory: Record<string, unknown>): void {
    const { advisories, toolCalls } = this.#reading;
    advisories.push(advisory);
    const isCancel = advisory.type === 'ToolCallCancel';
    const call = toolCalls.findLast(({ id }) => isCancel && id === advisory.id);
    if (call) this.#cancelled.add(call);
  }

  #complain(what: string): void {
    this.#reading.violations.push(what);
  }
}
