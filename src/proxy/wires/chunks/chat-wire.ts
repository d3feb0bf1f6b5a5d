import { MODES } from '../../../plans/seam/mode.ts';
import type { ChatRequest } from '../common/chat-request.ts';
import type { Wire } from '../common/wire.ts';
import { ChatCompletionsReader } from './chat-completions.ts';
import { continuationOf } from './chat-continuation.ts';
import { chatConversation } from './chat-conversation.ts';
import { chatDocument } from './chat-document.ts';
import { chatForm } from './chat-envelope.ts';
import { chatNotices } from './chat-notices.ts';
import { checkChatRequest, factsOf } from './chat-request.ts';
import { ChunkAnswerWriter } from './chunk-answer-writer.ts';
import { chunkDeliveredEvents } from './chunk-delivered-events.ts';
import type { ChunkEvent } from './chunk-reader.ts';

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
