import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta, Usage } from '../../../plans/delta.ts';
import type { ShownFragment } from '../../../plans/shown-calls.ts';
import type { ChatChoice, ChatChunk, ChatDelta } from './chat-chunk.ts';
import { REASONING_FIELDS } from './chat-completions.ts';
import { ChunkEnvelope, choicesWith } from './chunk-envelope.ts';
import type { ChunkEvent } from './chunk-reader.ts';

/** The envelope of chat completion chunks. */
export class ChatEnvelope extends ChunkEnvelope {
  /** Where the answering provider puts the model's thinking. */
  readonly #reasoningField: string;

  /** `first` gives the identity; `content` is the first chunk with content, which may be the same. */
  constructor(first: ChatChunk, content: ChatChunk = first) {
    super(first, 'chat.completion.chunk');
    const delta = deltaOf(content);
    this.#reasoningField =
      REASONING_FIELDS.find((field) => delta?.[field] !== undefined) ?? REASONING_FIELDS[0];
  }

  override payloadOf(event: ChunkEvent, role: boolean): string {
    if (this.fits(event.chunk) && event.role === role) return event.payload;
    return this.#adopt(event.moulded ? (JSON.parse(event.payload) as ChatChunk) : event.chunk, role);
  }

  override finishOf(chunk: ChatChunk, role: boolean, usage: Usage | undefined): string {
    const delta = { ...(role && { role: 'assistant', content: '' }), ...extrasOf(deltaOf(chunk) ?? {}) };
    const [choice]: unknown[] = Array.isArray(chunk.choices) ? chunk.choices : [];
    const reports = isObject(chunk.usage) || (isObject(choice) && isObject(choice.usage));
    // A report within the choice (Kimi) would be that of one attempt, beside the one of them all.
    const choices = choicesWith(chunk, { delta, ...(usage && { usage: undefined }) });
    return this.#adopt({ ...chunk, choices, ...(usage && reports && { usage }) }, role);
  }

  override textChunk(deltas: readonly Delta[], role: boolean): string {
    const delta: Record<string, string> = {};
    for (const part of deltas) {
      const field = this.#fieldOf(part);
      if (field && 'text' in part) delta[field] = (delta[field] ?? '') + part.text;
    }
    return this.#chunk(delta, role, null);
  }

  override toolChunk({ position, start, arguments: text, legacy }: ShownFragment, role: boolean): string {
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

  override finishChunk(reason: string, role: boolean): string {
    return this.#chunk({}, role, reason);
  }

  override emptyChunk(holdfast?: object): string {
    return this.chunkOf({ index: 0, delta: {}, finish_reason: null }, holdfast && { holdfast });
  }

  protected override isPlain({ choices }: ChatChunk): boolean {
    const [{ delta, index: _index, ...rest }] = choices as [ChatChoice & { delta: ChatDelta }];
    const { content, ...others } = delta;
    return typeof content === 'string' && [...Object.values(rest), ...Object.values(others)].every(isEmpty);
  }

  #adopt(chunk: ChatChunk, role: boolean): string {
    const delta = deltaOf(chunk);
    if (!delta) return this.adopted(chunk);
    const { role: _role, ...content } = delta;
    const [choice, ...others] = chunk.choices as object[];
    return this.adopted(chunk, [
      { ...choice, delta: role ? { role: 'assistant', ...content } : content },
      ...others,
    ]);
  }

  #chunk(delta: object, role: boolean, finish_reason: string | null): string {
    return this.chunkOf({
      index: 0,
      delta: role ? { role: 'assistant', ...delta } : delta,
      finish_reason,
    });
  }

  #fieldOf({ kind }: Delta): string | undefined {
    if (kind === 'text') return 'content';
    if (kind === 'refusal') return 'refusal';
    return kind === 'reasoning' ? this.#reasoningField : undefined;
  }
}

const SAID = new Set<string>([
  'role',
  'content',
  'refusal',
  'tool_calls',
  'function_call',
  ...REASONING_FIELDS,
]);

/** What a provider adds to a delta that is neither role nor content, such as the signature of a thought. */
const extrasOf = (delta: ChatDelta): object =>
  Object.fromEntries(Object.entries(delta).filter(([field]) => !SAID.has(field)));

/** `delta` of a chunk's first choice. */
function deltaOf(chunk: ChatChunk): ChatDelta | undefined {
  const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
  return isObject(choice) && isObject(choice.delta) ? choice.delta : undefined;
}
