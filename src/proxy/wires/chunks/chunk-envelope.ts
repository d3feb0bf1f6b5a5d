import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { ShownFragment } from '../../../plans/shown-calls.ts';
import type { ChatChunk, ChunkEvent } from './chunk-reader.ts';

/**
 * The fields that all chunks of one answer share: `id`, `created`, `model` and other top-level fields of the first
 * chunk. Taken from the first delivered chunk, they stay the same for all attempts.
 */
export interface ChunkEnvelope {
  /** The chunk that defines the identity. */
  readonly first: ChatChunk;
  readonly fields: Readonly<Record<string, unknown>>;
  /** The field in which the provider sends reasoning, on wires that have one. */
  readonly reasoningField?: string;
}

/** How a wire with chunks formats those of an answer. */
export interface ChunkForm {
  /** `first` defines the identity; `content` is the first chunk with content, which may be the same. */
  envelopeOf(first: ChatChunk, content?: ChatChunk): ChunkEnvelope;
  /** The event verbatim if it matches, else rewritten as part of this answer. `role`: it is the first chunk. */
  payloadOf(envelope: ChunkEnvelope, event: ChunkEvent, role: boolean): string;
  /** A provider's finish or usage chunk without content, and with `usage` in place of its own report. */
  finishOf(envelope: ChunkEnvelope, chunk: ChatChunk, role: boolean, usage: Usage | undefined): string;
  /** A chunk with `deltas`, which contain no tool call. */
  textChunk(envelope: ChunkEnvelope, deltas: readonly Delta[], role: boolean): string;
  toolChunk(envelope: ChunkEnvelope, fragment: ShownFragment, role: boolean): string;
  finishChunk(envelope: ChunkEnvelope, reason: string, role: boolean): string;
  /** A valid chunk without content, which resets client timeouts that ignore comments; may carry our own object. */
  emptyChunk(envelope: ChunkEnvelope, holdfast?: object): string;
  /** Its choice has only text, besides fields that every chunk has. */
  isPlain(chunk: ChatChunk): boolean;
}

/** `object`: the type of the chunks. */
export function envelopeFrom(first: ChatChunk, object: string): ChunkEnvelope {
  const { choices: _choices, usage: _usage, error: _error, obfuscation: _obfuscation, ...fields } = first;
  return { first, fields: { ...fields, object } };
}

/** Whether the chunk belongs to this answer unchanged. Some clients treat `error: null` next to content as fatal. */
export function fits({ first }: ChunkEnvelope, chunk: ChatChunk): boolean {
  const same = chunk.id === first.id && chunk.model === first.model && chunk.created === first.created;
  return same && chunk.error === undefined;
}

/** Whether the form's text chunk carries everything that this matching text chunk does. */
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

/** The chunk rewritten as part of this answer. `choices`: replaces its own, if given. */
export const adopted = (
  { fields }: ChunkEnvelope,
  { error: _error, ...chunk }: ChatChunk,
  choices?: readonly unknown[],
): string => JSON.stringify({ ...chunk, ...fields, ...(choices && { choices }) });

/** The chunk's choices, each with `change` applied. */
export const choicesWith = ({ choices }: ChatChunk, change: object): readonly unknown[] =>
  Array.isArray(choices)
    ? choices.map((choice: unknown) => (isObject(choice) ? { ...choice, ...change } : choice))
    : [];
