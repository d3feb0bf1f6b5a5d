import { ChatAnswerWriter } from './chat-answer-writer.ts';
import { ChatCompletionsReader, type ChunkEvent } from './chat-completions.ts';
import { chatDeliveredEvents } from './chat-delivered-events.ts';
import type { Wire } from './wire.ts';

/** `/v1/chat/completions` */
export const chatWire: Wire<ChunkEvent> = {
  name: 'chat_completions',
  path: '/chat/completions',
  reader: (nextCall) => new ChatCompletionsReader(nextCall),
  writer: (options) => new ChatAnswerWriter(options),
  delivered: chatDeliveredEvents,
};
