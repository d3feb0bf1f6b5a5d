import { isObject } from '../../../lib/json.ts';
import type { DocumentFold } from '../common/document.ts';
import type { Wire } from '../common/wire.ts';
import { ResponsesAnswerWriter } from './answer-writer.ts';
import { responsesConversation, responsesNotices } from './conversation.ts';
import { responsesDeliveredEvents } from './delivered-events.ts';
import { eventTypeOf, type ResponsesData, type ResponsesEvent, TERMINAL } from './event.ts';
import { ResponsesReader } from './reader.ts';
import {
  backgroundFields,
  checkResponsesRequest,
  isBackground,
  type ResponsesRequest,
  responsesContinuationOf,
  responsesFactsOf,
  responsesRefuseThoughts,
  responsesWithoutThoughts,
} from './request.ts';

/** The last event of a response contains the whole document. */
class ResponseFold implements DocumentFold {
  readonly extra_bytes = 0;
  #response: object | undefined;

  add(payload: string): void {
    if (!TERMINAL.has(eventTypeOf(payload))) return;
    const { response } = JSON.parse(payload) as ResponsesData;
    if (isObject(response)) this.#response = response;
  }

  document(): object | undefined {
    return this.#response;
  }
}

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
  refusesThoughts: responsesRefuseThoughts,
  withoutThoughts: responsesWithoutThoughts,
  conversation: responsesConversation,
  eventOf: eventTypeOf,
  reader: (nextCall, request, _isRest, isInBackground) =>
    new ResponsesReader(nextCall, isInBackground ? 'operator' : isBackground(request) ? 'client' : undefined),
  backgroundFields,
  writer: (options) => new ResponsesAnswerWriter(options),
  delivered: responsesDeliveredEvents,
  document: {
    // A background response is answered before it is generated.
    streamFields: ({ background }) => (background === true ? undefined : { stream: true }),
    fold: () => new ResponseFold(),
    isAnswer: ({ object, output, status }) =>
      object === 'response' && Array.isArray(output) && status !== 'failed',
  },
};
