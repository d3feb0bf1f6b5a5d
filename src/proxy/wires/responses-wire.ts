import { ResponsesAnswerWriter } from './responses-answer-writer.ts';
import { responsesContinuationOf } from './responses-continuation.ts';
import { responsesConversation } from './responses-conversation.ts';
import type { ResponsesEvent } from './responses-data.ts';
import { eventTypeOf, responsesDeliveredEvents } from './responses-delivered-events.ts';
import { responsesDocument } from './responses-document.ts';
import { responsesNotices } from './responses-notices.ts';
import { ResponsesReader } from './responses-reader.ts';
import {
  checkResponsesRequest,
  isBackground,
  type ResponsesRequest,
  responsesFactsOf,
} from './responses-request.ts';
import type { Wire } from './wire.ts';

/** `/v1/responses` */
export const responsesWire: Wire<ResponsesEvent, ResponsesRequest> = {
  name: 'responses',
  path: '/responses',
  notices: responsesNotices,
  previousAnswer: 'previous_response_id',
  modes: ['resume', 'nudge', 'replay', 'restart'],
  request: checkResponsesRequest,
  facts: responsesFactsOf,
  continuation: responsesContinuationOf,
  conversation: responsesConversation,
  eventOf: eventTypeOf,
  reader: (nextCall, request) => new ResponsesReader(nextCall, isBackground(request)),
  writer: (options) => new ResponsesAnswerWriter(options),
  delivered: responsesDeliveredEvents,
  document: responsesDocument,
};
