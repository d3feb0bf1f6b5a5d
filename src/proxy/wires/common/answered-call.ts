import type { SettledCall } from '../../../plans/tool-call.ts';

/** A call of which a request has nothing but the result: its provider keeps the conversation. */
export interface KeptCall {
  readonly id: string;
  /** The answer that the request goes on from, if it names it. */
  readonly answer: string | undefined;
}

/** A call whose result a request brings. */
export type AnsweredCall = SettledCall | KeptCall;
