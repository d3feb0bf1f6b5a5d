import type { Wire } from '../common/wire.ts';
import { ResponsesAnswerWriter } from './answer-writer.ts';
import { responsesContinuationOf } from './continuation.ts';
import { responsesConversation } from './conversation.ts';
import type { ResponsesEvent } from './data.ts';
import { eventTypeOf, responsesDeliveredEvents } from './delivered-events.ts';
import { responsesDocument } from './document.ts';
import { responsesNotices } from './notices.ts';
import { ResponsesReader } from './reader.ts';
import { checkResponsesRequest, isBackground, type ResponsesRequest, responsesFactsOf } from './request.ts';

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
