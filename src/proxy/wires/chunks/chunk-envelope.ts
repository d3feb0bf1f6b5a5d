import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { ShownFragment } from '../../../plans/shown-calls.ts';
import type { ChatChunk } from './chat-chunk.ts';
import type { ChunkEvent } from './chunk-reader.ts';

/**
 * What all chunks of one answer share: `id`, `created`, `model` and whatever else the first chunk had at its top.
 * Taken from the first chunk that is delivered, it stays the same whichever attempt continues the answer.
 */
export abstract class ChunkEnvelope {
  readonly #first: ChatChunk;
  readonly #fields: Readonly<Record<string, unknown>>;

  /** `first` gives the identity; `object` says what its chunks are. */
  constructor(first: ChatChunk, object: string) {
    const { choices: _choices, usage: _usage, error: _error, obfuscation: _obfuscation, ...fields } = first;
    this.#first = first;
    this.#fields = { ...fields, object };
  }

  /** The event as it came if it fits, else made part of this answer. `role`: it is the first chunk. */
  abstract payloadOf(event: ChunkEvent, role: boolean): string;
  /** The finish chunk or usage chunk of a provider, with nothing left of content and with `usage` put in its place. */
  abstract finishOf(chunk: ChatChunk, role: boolean, usage: Usage | undefined): string;
  /** A chunk that says `deltas`, none of which is about a tool call. */
  abstract textChunk(deltas: readonly Delta[], role: boolean): string;
  abstract toolChunk(fragment: ShownFragment, role: boolean): string;
  abstract finishChunk(reason: string, role: boolean): string;
  /** A valid chunk that says nothing, but resets timers that ignore comments; carries our own object, if any. */
  abstract emptyChunk(holdfast?: object): string;
  /** Its choice has text, and nothing besides that is not in every chunk. */
  protected abstract isPlain(chunk: ChatChunk): boolean;

  /** `id` of every chunk. */
  get id(): string | undefined {
    const { id } = this.#first;
    return typeof id === 'string' ? id : undefined;
  }

  /** The chunk belongs to this answer as it is. `error: null` beside content is a fatal error to some clients. */
  fits(chunk: ChatChunk): boolean {
    const first = this.#first;
    const same = chunk.id === first.id && chunk.model === first.model && chunk.created === first.created;
    return same && chunk.error === undefined;
  }

  /** {@link textChunk} says all that this chunk does, which has text and {@link fits}. */
  rebuilds(chunk: ChatChunk): boolean {
    const { choices: _choices, obfuscation: _obfuscation, ...fields } = chunk;
    const isShared = Object.entries(fields).every(
      ([name, value]) => isEmpty(value) || this.#shares(name, value),
    );
    return isShared && this.isPlain(chunk);
  }

  usageChunk(usage: Usage): string {
    return JSON.stringify({ ...this.#fields, choices: [], usage });
  }

  protected chunkOf(choice: object, more: object = {}): string {
    return JSON.stringify({ ...this.#fields, choices: [choice], ...more });
  }

  /** `choices`: put in place of the chunk's own, if any. */
  protected adopted({ error: _error, ...chunk }: ChatChunk, choices?: readonly unknown[]): string {
    return JSON.stringify({ ...chunk, ...this.#fields, ...(choices && { choices }) });
  }

  #shares(name: string, value: unknown): boolean {
    const own = this.#fields[name];
    return own === value || (typeof value === 'object' && JSON.stringify(own) === JSON.stringify(value));
  }
}

export type EnvelopeMaker = (first: ChatChunk, content?: ChatChunk) => ChunkEnvelope;

/** The chunk's choices with `change` made to each. */
export const choicesWith = ({ choices }: ChatChunk, change: object): readonly unknown[] =>
  Array.isArray(choices)
    ? choices.map((choice: unknown) => (isObject(choice) ? { ...choice, ...change } : choice))
    : [];
