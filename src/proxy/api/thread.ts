import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../../lib/json.ts';
import type { Fields } from '../../lib/json-body.ts';
import { headerThread, THREAD_CHARACTERS_MAX } from './run-options.ts';

/** The conversation that a request belongs to. */
export interface Thread {
  readonly name: string;
  /**
   * The client did not name it for this purpose. Programs ask several models in one session, one for the answer and one
   * for its title, so what there is to tell waits for a request to the same model.
   */
  readonly isDerived: boolean;
}

/** `Holdfast-Thread`, or with `derive` what the client calls its session. Throws `invalid_field`. */
export function threadOf(headers: IncomingHttpHeaders, fields: Fields, derive: boolean): Thread | undefined {
  const named = headerThread(headers);
  if (named !== undefined) return { name: named, isDerived: false };
  const name = derive ? [claudeCodeThread(headers), ...sessionFields(fields)].find(isName) : undefined;
  return name === undefined ? undefined : { name, isDerived: true };
}

/** A sub-agent has a conversation of its own in the session of the agent that started it. */
function claudeCodeThread(headers: IncomingHttpHeaders): unknown {
  const session = headers['x-claude-code-session-id'];
  const agent = headers['x-claude-code-agent-id'];
  return isName(session) && isName(agent) ? `${session}/${agent}` : session;
}

/** The most specific first. */
function sessionFields({ prompt_cache_key, conversation, metadata, user }: Fields): readonly unknown[] {
  return [
    prompt_cache_key,
    isObject(conversation) ? conversation.id : conversation,
    isObject(metadata) ? metadata.session_id : undefined,
    user,
  ];
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= THREAD_CHARACTERS_MAX;
