import { MODES } from '../../../plans/seam/mode.ts';
import type { Wire } from '../common/wire.ts';
import { claudeContinues } from '../dialects/model-families.ts';
import { anthropic } from '../dialects/model-hosts.ts';
import { MessagesAnswerWriter } from './answer-writer.ts';
import { messagesConversation, messagesNotices } from './conversation.ts';
import { messagesDeliveredEvents } from './delivered-events.ts';
import { messagesDocument } from './document.ts';
import { errorPayload, type MessagesEvent, typeOf } from './event.ts';
import { pausedUses } from './provider-tools.ts';
import { MessagesReader } from './reader.ts';
import {
  checkMessagesRequest,
  type MessagesRequest,
  messagesContinuationOf,
  messagesFactsOf,
  messagesKeepsCache,
  messagesRefuseThoughts,
  messagesWithoutThoughts,
} from './request.ts';

/** `/v1/messages` */
export const messagesWire: Wire<MessagesEvent, MessagesRequest> = {
  name: 'messages',
  path: '/messages',
  keyHeader: 'x-api-key',
  headers: { 'anthropic-version': '2023-06-01' },
  notices: messagesNotices,
  isOrdered: true,
  modes: MODES,
  // The Messages API documents what its OpenAI-compatible endpoint leaves open.
  dialect: { ...anthropic, prefill: claudeContinues },
  request: checkMessagesRequest,
  facts: messagesFactsOf,
  continuation: messagesContinuationOf,
  keepsCache: messagesKeepsCache,
  refusesThoughts: messagesRefuseThoughts,
  withoutThoughts: messagesWithoutThoughts,
  conversation: messagesConversation,
  errorBody: errorPayload,
  eventOf: typeOf,
  reader: (nextCall, request, isRest) => new MessagesReader(nextCall, isRest ? [] : pausedUses(request)),
  writer: (options) => new MessagesAnswerWriter(options),
  delivered: messagesDeliveredEvents,
  document: messagesDocument,
};
