import type { Delta, Usage } from '../../plans/delta.ts';
import type { ShownFragment } from '../shown-calls.ts';
import { type ChatChoice, type ChatChunk, type ChatDelta, isObject } from './chat-chunk.ts';
import { type ChunkEvent, REASONING_FIELDS } from './chat-completions.ts';

/**
 * What all chunks of one answer share: `id`, `created`, `model` and whatever else the first chunk had at its top.
 * Taken from the first chunk that is delivered, it stays the same whichever attempt goes on with the answer.
 */
export class ChatEnvelope {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #first: ChatChunk;
  /** Where the answering provider puts the model's thinking. */
  readonly #reasoningField: string;
  /** The chunk that was {@link rebuilds looked at} last and found to be rebuilt: moulded events share one. */
  #rebuilt: ChatChunk | undefined;

  /** `first` gives the identity; `content` is the first chunk with content, which may be the same. */
  constructor(first: ChatChunk, content: ChatChunk = first) {
    const { choices: _choices, usage: _usage, error: _error, obfuscation: _obfuscation, ...fields } = first;
    this.#first = first;
    this.#fields = { ...fields, object: 'chat.completion.chunk' };
    const delta = deltaOf(content);
    this.#reasoningField =
      REASONING_FIELDS.find((field) => delta?.[field] !== undefined) ?? REASONING_FIELDS[0];
  }

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
    if (chunk === this.#rebuilt) return true;
    const { choices, obfuscation: _obfuscation, ...fields } = chunk;
    const [{ delta, index: _index, ...rest }] = choices as [ChatChoice & { delta: ChatDelta }];
    const { content, ...others } = delta;
    const isPlain =
      typeof content === 'string' && [...Object.values(rest), ...Object.values(others)].every(isEmpty);
    const isShared = Object.entries(fields).every(
      ([name, value]) => isEmpty(value) || this.#shares(name, value),
    );
    if (!isPlain || !isShared) return false;
    this.#rebuilt = chunk;
    return true;
  }

  /** The event as it came if it fits, else made part of this answer. `role`: it is the first chunk. */
  payloadOf(event: ChunkEvent, role: boolean): string {
    if (this.fits(event.chunk) && event.role === role) return event.payload;
    return this.#adopt(event.moulded ? (JSON.parse(event.payload) as ChatChunk) : event.chunk, role);
  }

  /** The finish chunk or usage chunk of a provider, with nothing left of content and with `usage` put in its place. */
  finishOf(chunk: ChatChunk, role: boolean, usage: Usage | undefined): string {
    const delta = role ? { role: 'assistant', content: '' } : {};
    const choices = Array.isArray(chunk.choices)
      ? chunk.choices.map((choice: unknown) => (isObject(choice) ? { ...choice, delta } : choice))
      : [];
    return this.#adopt({ ...chunk, choices, ...(usage && isObject(chunk.usage) && { usage }) }, role);
  }

  /** A chunk that says `deltas`, none of which is about a tool call. */
  textChunk(deltas: readonly Delta[], role: boolean): string {
    const delta: Record<string, string> = {};
    for (const part of deltas) {
      const field = this.#fieldOf(part);
      if (field && 'text' in part) delta[field] = (delta[field] ?? '') + part.text;
    }
    return this.#chunk(delta, role, null);
  }

  toolChunk({ position, start, arguments: text, legacy }: ShownFragment, role: boolean): string {
    if (legacy)
      return this.#chunk(
        { function_call: { ...(start && { name: start.name }), arguments: text } },
        role,
        null,
      );
    const call = start
      ? {
          index: position,
          id: start.id,
          type: 'function',
          ...start.extra,
          function: { name: start.name, arguments: text },
        }
      : { index: position, function: { arguments: text } };
    return this.#chunk({ tool_calls: [call] }, role, null);
  }

  finishChunk(reason: string, role: boolean): string {
    return this.#chunk({}, role, reason);
  }

  usageChunk(usage: Usage): string {
    return JSON.stringify({ ...this.#fields, choices: [], usage });
  }

  /** A valid chunk that says nothing, but resets timers that ignore comments; carries our own object, if any. */
  emptyChunk(holdfast?: object): string {
    const chunk = { ...this.#fields, choices: [{ index: 0, delta: {}, finish_reason: null }] };
    return JSON.stringify(holdfast ? { ...chunk, holdfast } : chunk);
  }

  #adopt({ error: _error, ...chunk }: ChatChunk, role: boolean): string {
    const delta = deltaOf(chunk);
    if (!delta) return JSON.stringify({ ...chunk, ...this.#fields });
    const { role: _role, ...content } = delta;
    const [choice, ...others] = chunk.choices as object[];
    const choices = [{ ...choice, delta: role ? { role: 'assistant', ...content } : content }, ...others];
    return JSON.stringify({ ...chunk, ...this.#fields, choices });
  }

  #chunk(delta: object, role: boolean, finish_reason: string | null): string {
    const choice = { index: 0, delta: role ? { role: 'assistant', ...delta } : delta, finish_reason };
    return JSON.stringify({ ...this.#fields, choices: [choice] });
  }

  #shares(name: string, value: unknown): boolean {
    const own = this.#fields[name];
    return own === value || (typeof value === 'object' && JSON.stringify(own) === JSON.stringify(value));
  }

  #fieldOf({ kind }: Delta): string | undefined {
    if (kind === 'text') return 'content';
    if (kind === 'refusal') return 'refusal';
    return kind === 'reasoning' ? this.#reasoningField : undefined;
  }
}

/** Says nothing that anybody could miss. */
const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value as object).length === 0);

/** `delta` of a chunk's first choice. */
function deltaOf(chunk: ChatChunk): ChatDelta | undefined {
  const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
  return isObject(choice) && isObject(choice.delta) ? choice.delta : undefined;
}
