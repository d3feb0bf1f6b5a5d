import type { Fields } from '../../../lib/json-body.ts';

/** How a wire answers a request that does not ask for a stream: with one document. */
export interface WireDocument {
  /** The fields that make the request one for a stream which says all that the document would; `undefined` if none does. */
  streamFields(fields: Fields): Fields | undefined;
  fold(): DocumentFold;
  /** Whether this is the document of an answer that ended as it should. */
  isAnswer(body: Fields): boolean;
}

/** Puts the events of an answer together to the document that its provider would have answered with. */
export interface DocumentFold {
  /** Characters kept besides text and calls: providers add to their events what they like. */
  readonly extra_characters: number;
  /** The payload of the next event, as the client of a stream is sent it. */
  add(payload: string): void;
  /** After the last one. `undefined` if they are no whole answer. */
  document(): object | undefined;
}
