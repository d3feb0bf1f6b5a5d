import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { MODES } from '../../../plans/seam/mode.ts';
import type { ChatRequest } from '../common/request.ts';
import type { Wire } from '../common/wire.ts';
import { ChatCompletionsReader, REASONING_FIELDS } from './chat-completions.ts';
import { chatConversation, chatNotices } from './chat-conversation.ts';
import { checkChatRequest, continuationOf, factsOf } from './chat-request.ts';
import { ChunkAnswerWriter } from './chunk-answer-writer.ts';
import { chunkDeliveredEvents } from './chunk-delivered-events.ts';
import { chatDocument } from './chunk-document.ts';
import {
  adopted,
  type ChunkEnvelope,
  type ChunkForm,
  choicesWith,
  chunkOf,
  envelopeFrom,
  fits,
} from './chunk-envelope.ts';
import { type ChatChoice, type ChatChunk, type ChatDelta, type ChunkEvent, deltaOf } from './chunk-reader.ts';

/** The form of chat completion chunks. */
export const chatForm: ChunkForm = {
  envelopeOf(first, content = first) {
    const delta = deltaOf(content);
    const reasoningField =
      REASONING_FIELDS.find((field) => delta?.[field] !== undefined) ?? REASONING_FIELDS[0];
    return { ...envelopeFrom(first, 'chat.completion.chunk'), reasoningField };
  },

  payloadOf(envelope, { chunk, payload, role: hasRole, fitsTemplate }, role) {
    if (fits(envelope, chunk) && hasRole === role) return payload;
    return adopt(envelope, fitsTemplate ? (JSON.parse(payload) as ChatChunk) : chunk, role);
  },

  finishOf(envelope, chunk, role, usage) {
    const delta = { ...(role && { role: 'assistant', content: '' }), ...extrasOf(deltaOf(chunk) ?? {}) };
    const [choice]: unknown[] = Array.isArray(chunk.choices) ? chunk.choices : [];
    const reports = isObject(chunk.usage) || (isObject(choice) && isObject(choice.usage));
    // A report within the choice (Kimi) would cover one attempt, next to the report for all of them.
    const choices = choicesWith(chunk, { delta, ...(usage && { usage: undefined }) });
    return adopt(envelope, { ...chunk, choices, ...(usage && reports && { usage }) }, role);
  },

  textChunk(envelope, deltas, role) {
    const delta: Record<string, string> = {};
    for (const part of deltas) {
      const field = fieldOf(part, envelope);
      if (field && 'text' in part) delta[field] = (delta[field] ?? '') + part.text;
    }
    return chunkWith(envelope, delta, role);
  },

  toolChunk(envelope, { position, start, arguments: text, legacy }, role) {
    if (legacy) {
      const call = { ...(start && { name: start.name }), arguments: text };
      return chunkWith(envelope, { function_call: call }, role);
    }
    const call = start
      ? {
          index: position,
          id: start.id,
          type: 'function',
          ...start.extra,
          function: { name: start.name, arguments: text },
        }
      : { index: position, function: { arguments: text } };
    return chunkWith(envelope, { tool_calls: [call] }, role);
  },

  finishChunk: (envelope, reason, role) => chunkWith(envelope, {}, role, reason),

  emptyChunk: (envelope, holdfast) =>
    chunkOf(envelope, { index: 0, delta: {}, finish_reason: null }, holdfast && { holdfast }),

  isPlain({ choices }) {
    const [{ delta, index: _index, ...rest }] = choices as [ChatChoice & { delta: ChatDelta }];
    const { content, ...others } = delta;
    return typeof content === 'string' && [...Object.values(rest), ...Object.values(others)].every(isEmpty);
  },
};

function adopt(envelope: ChunkEnvelope, chunk: ChatChunk, role: boolean): string {
  const delta = deltaOf(chunk);
  if (!delta) return adopted(envelope, chunk);
  const { role: _role, ...content } = delta;
  const [choice, ...others] = chunk.choices as object[];
  const own = { ...choice, delta: role ? { role: 'assistant', ...content } : content };
  return adopted(envelope, chunk, [own, ...others]);
}

const chunkWith = (
  envelope: ChunkEnvelope,
  delta: object,
  role: boolean,
  finish_reason: string | null = null,
): string =>
  chunkOf(envelope, { index: 0, delta: role ? { role: 'assistant', ...delta } : delta, finish_reason });

function fieldOf({ kind }: Delta, { reasoningField }: ChunkEnvelope): string | undefined {
  if (kind === 'text') return 'content';
  if (kind === 'refusal') return 'refusal';
  return kind === 'reasoning' ? reasoningField : undefined;
}

const SAID = new Set<string>([
  'role',
  'content',
  'refusal',
  'tool_calls',
  'function_call',
  ...REASONING_FIELDS,
]);

/** Provider-specific fields of a delta besides role and content, such as the signature of reasoning. */
const extrasOf = (delta: ChatDelta): object =>
  Object.fromEntries(Object.entries(delta).filter(([field]) => !SAID.has(field)));

/** `/v1/chat/completions` */
export const chatWire: Wire<ChunkEvent, ChatRequest> = {
  name: 'chat_completions',
  path: '/chat/completions',
  notices: chatNotices,
  modes: MODES,
  isKept: true,
  request: checkChatRequest,
  facts: factsOf,
  continuation: continuationOf,
  conversation: chatConversation,
  reader: (nextCall) => new ChatCompletionsReader(nextCall),
  writer: (options) => new ChunkAnswerWriter(options, chatForm),
  delivered: chunkDeliveredEvents(() => new ChatCompletionsReader(() => 0), chatForm),
  document: chatDocument,
};
