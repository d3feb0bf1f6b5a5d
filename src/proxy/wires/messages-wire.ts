import { MODES } from '../../plans/continuation.ts';
import { anthropic } from '../dialects/anthropic.ts';
import { MessagesAnswerWriter } from './messages-answer-writer.ts';
import { messagesContinuationOf } from './messages-continuation.ts';
import { messagesConversation } from './messages-conversation.ts';
import { messagesDeliveredEvents } from './messages-delivered-events.ts';
import { messagesDocument } from './messages-document.ts';
import { type MessagesEvent, typeOf } from './messages-event.ts';
import { messagesNotices } from './messages-notices.ts';
import { errorPayload } from './messages-payloads.ts';
import { MessagesReader } from './messages-reader.ts';
import { checkMessagesRequest, type MessagesRequest, messagesFactsOf } from './messages-request.ts';
import type { Wire } from './wire.ts';

/** `/v1/messages` */
export const messagesWire: Wire<MessagesEvent, MessagesRequest> = {
  name: 'messages',
  path: '/messages',
  keyHeader: 'x-api-key',
  headers: { 'anthropic-version': '2023-06-01' },
  notices: messagesNotices,
  isOrdered: true,
  modes: MODES,
  dialect: anthropic,
  request: checkMessagesRequest,
  facts: messagesFactsOf,
  continuation: messagesContinuationOf,
  conversation: messagesConversation,
  errorBody: errorPayload,
  eventOf: typeOf,
  reader: (nextCall) => new MessagesReader(nextCall),
  writer: (options) => new MessagesAnswerWriter(options),
  delivered: messagesDeliveredEvents,
  document: messagesDocument,
};
