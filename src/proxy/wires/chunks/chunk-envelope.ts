import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { ShownFragment } from '../../../plans/shown-calls.ts';
import type { ChatChunk, ChunkEvent } from './chunk-reader.ts';

/**
 * What all chunks of one answer share: `id`, `created`, `model` and whatever else the first chunk had at its top.
 * Taken from the first chunk that is delivered, it stays the same whichever attempt continues the answer.
 */
export interface ChunkEnvelope {
  /** The chunk that gave the identity. */
  readonly first: ChatChunk;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Where the answering provider puts the model's thinking, on the wire that has it. */
  readonly reasoningField?: string;
}

/** How a wire that speaks in chunks forms those of one answer. */
export interface ChunkForm {
  /** `first` gives the identity; `content` is the first chunk with content, which may be the same. */
  envelopeOf(first: ChatChunk, content?: ChatChunk): ChunkEnvelope;
  /** The event as it came if it fits, else made part of this answer. `role`: it is the first chunk. */
  payloadOf(envelope: ChunkEnvelope, event: ChunkEvent, role: boolean): string;
  /** The finish chunk or usage chunk of a provider, with nothing left of content and with `usage` put in its place. */
  finishOf(envelope: ChunkEnvelope, chunk: ChatChunk, role: boolean, usage: Usage | undefined): string;
  /** A chunk that says `deltas`, which hold no tool call. */
  textChunk(envelope: ChunkEnvelope, deltas: readonly Delta[], role: boolean): string;
  toolChunk(envelope: ChunkEnvelope, fragment: ShownFragment, role: boolean): string;
  finishChunk(envelope: ChunkEnvelope, reason: string, role: boolean): string;
  /** A valid chunk that says nothing, but resets timers that ignore comments; carries our own object, if any. */
  emptyChunk(envelope: ChunkEnvelope, holdfast?: object): string;
  /** Its choice has text, and nothing besides that is not in every chunk. */
  isPlain(chunk: ChatChunk): boolean;
}

/** `object` says what the chunks are. */
export function envelopeFrom(first: ChatChunk, object: string): ChunkEnvelope {
  const { choices: _choices, usage: _usage, error: _error, obfuscation: _obfuscation, ...fields } = first;
  return { first, fields: { ...fields, object } };
}

/** The chunk belongs to this answer as it is. `error: null` beside content is a fatal error to some clients. */
export function fits({ first }: ChunkEnvelope, chunk: ChatChunk): boolean {
  const same = chunk.id === first.id && chunk.model === first.model && chunk.created === first.created;
  return same && chunk.error === undefined;
}

/** The form's text chunk says all that this chunk does, which has text and {@link fits}. */
export function rebuilds({ isPlain }: ChunkForm, { fields: own }: ChunkEnvelope, chunk: ChatChunk): boolean {
  const { choices: _choices, obfuscation: _obfuscation, ...fields } = chunk;
  const isShared = ([name, value]: [string, unknown]) =>
    isEmpty(value) ||
    own[name] === value ||
    (typeof value === 'object' && JSON.stringify(own[name]) === JSON.stringify(value));
  return Object.entries(fields).every(isShared) && isPlain(chunk);
}

export const usageChunk = ({ fields }: ChunkEnvelope, usage: Usage): string =>
  JSON.stringify({ ...fields, choices: [], usage });

export const chunkOf = ({ fields }: ChunkEnvelope, choice: object, more: object = {}): string =>
  JSON.stringify({ ...fields, choices: [choice], ...more });

/** The chunk as one of this answer. `choices`: put in place of its own, if any. */
export const adopted = (
  { fields }: ChunkEnvelope,
  { error: _error, ...chunk }: ChatChunk,
  choices?: readonly unknown[],
): string => JSON.stringify({ ...chunk, ...fields, ...(choices && { choices }) });

/** The chunk's choices with `change` made to each. */
export const choicesWith = ({ choices }: ChatChunk, change: object): readonly unknown[] =>
  Array.isArray(choices)
    ? choices.map((choice: unknown) => (isObject(choice) ? { ...choice, ...change } : choice))
    : [];
