import type { Fields } from '../../../lib/json-body.ts';
import type { AnsweredCall } from './answered-call.ts';
import type { Form, Notice } from './notice.ts';

/** How a model is told something besides in the requests of one wire. Their fields are whatever the client has put there. */
export interface WireNotices {
  /** The calls of the latest turn whose results the request brings. */
  answeredCalls(request: Fields): readonly AnsweredCall[];
  /** The request with what the notice says; the rest of it is as it was. */
  withNotice(request: Fields, notice: Notice, form: Exclude<Form, 'left_out'>): Fields;
}

/** Content with one more text; `undefined` for what has no room for it. `type`: of a part that is text. */
export function withText(content: unknown, text: string, type: string): unknown {
  if (typeof content === 'string') return content === '' ? text : `${content}\n\n${text}`;
  if (Array.isArray(content)) return [...(content as unknown[]), { type, text }];
  return undefined;
}
