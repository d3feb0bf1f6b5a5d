import type { Envelope } from '../events.ts';
import type { ExpectedAnswer } from '../expected.ts';
import {
  KEEPALIVE,
  responseOf,
  responsesBadFinish,
  responsesErrors,
  responsesEvents,
  responsesMalformed,
  responsesUsage,
} from './responses-events.ts';
import { responsesRequest } from './responses-request.ts';
import type { ProviderWire } from './wire.ts';

export const responsesWire: ProviderWire = {
  path: '/responses',
  hasTurns: true,
  request: responsesRequest,
  events: responsesEvents,
  errors: responsesErrors,
  badFinish: responsesBadFinish,
  done: ['data: [DONE]\n\n'],
  malformed: responsesMalformed,
  ping: () => KEEPALIVE,
  whole: response,
};

/** The answer to a request that does not ask for a stream. */
function response(expected: ExpectedAnswer, envelope: Envelope): object {
  const { text, reasoning, toolCalls, usage } = expected;
  const { id } = envelope;
  const thought = { id: `rs_${id}`, type: 'reasoning', summary: [{ type: 'summary_text', text: reasoning }] };
  const content = [{ type: 'output_text', annotations: [], logprobs: [], text }];
  const output = [
    ...(reasoning === '' ? [] : [thought]),
    ...(text === ''
      ? []
      : [{ id: `msg_${id}`, type: 'message', status: 'completed', content, role: 'assistant' }]),
    ...toolCalls.map(({ id: call_id, name, arguments: json }) => ({
      id: `fc_${call_id}`,
      type: 'function_call',
      status: 'completed',
      call_id,
      name,
      arguments: json,
    })),
  ];
  return responseOf(envelope, 'completed', { output, usage: responsesUsage(usage) });
}
