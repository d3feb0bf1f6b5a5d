import { isObject } from '../../../lib/json.ts';
import type { DocumentFold, WireDocument } from '../common/document.ts';
import { type ResponsesData, TERMINAL } from './data.ts';
import { eventTypeOf } from './delivered-events.ts';

/** The last event of a response has all of it. */
class ResponseFold implements DocumentFold {
  readonly extra_characters = 0;
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

/** Documents of `/v1/responses`. */
export const responsesDocument: WireDocument = {
  // One that is made in the background is answered before it is made.
  streamFields: ({ background }) => (background === true ? undefined : { stream: true }),
  fold: () => new ResponseFold(),
  isAnswer: ({ object, output, status }) =>
    object === 'response' && Array.isArray(output) && status !== 'failed',
};
