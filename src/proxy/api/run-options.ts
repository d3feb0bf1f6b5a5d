import type { IncomingHttpHeaders } from 'node:http';
import { isRunId, type RunId } from '../../checkpoint/store.ts';
import type { Configuration } from '../../config/configuration.ts';
import { apiError } from '../../lib/errors.ts';
import { isObject } from '../../lib/json.ts';
import type { Fields } from '../../lib/json-body.ts';
import { runOfLastEvent } from '../resume/reader.ts';
import type { Run } from '../run/context/run.ts';
import type { TaskSession } from '../tasks/task-steps.ts';
import type { EventsMode } from '../wires/common/wire.ts';
import { invalid, NAME_CHARACTERS_MAX, named, numberIn, single } from './request-fields.ts';
import { taskOptions } from './task-options.ts';

/** Whether calls are shown once they are proven complete, or as they arrive. */
export type ToolCallsMode = Configuration['delivery']['tool_calls'];

/** Options from the request's headers, which the wires have no fields for. */
export interface RunOptions {
  /** `Holdfast-Events`; `live` only through `Holdfast-Tool-Calls`. */
  readonly events: EventsMode;
  /** `Holdfast-Resume` */
  readonly resumable: boolean;
  /** `Holdfast-Deadline-Ms` */
  readonly deadline_ms?: number;
  /** `Holdfast-Thread` */
  readonly thread?: string;
  /** `Holdfast-Run-Id`, or the run in `Last-Event-ID`: this request was sent for it before. */
  readonly run?: RunId;
  /** `Idempotency-Key` */
  readonly key?: string;
  /** `Holdfast-Task` and related headers */
  readonly task?: TaskSession;
}

const EVENTS_MODES: readonly EventsMode[] = ['none', 'chunks', 'comments'];
const TOOL_CALLS: readonly ToolCallsMode[] = ['held', 'live'];
/** The same limit as for `recovery.deadline_ms`. */
const DEADLINE_MS_MAX = 2 ** 31 - 1;

/**
 * `tool_calls`: the mode without a header. Throws `invalid_field`, and `run_not_found` for an id that can't belong to a
 * run. Empty headers count as absent.
 */
export function runOptions(headers: IncomingHttpHeaders, tool_calls: ToolCallsMode = 'held'): RunOptions {
  const thread = named('Holdfast-Thread', headers);
  const run = single(headers['holdfast-run-id']) ?? runOfLastEvent(headers);
  const key = single(headers['idempotency-key']);
  const deadline_ms = numberIn('Holdfast-Deadline-Ms', headers, 'milliseconds', DEADLINE_MS_MAX);
  const task = taskOptions(headers);
  if (run !== undefined && !isRunId(run)) throw apiError('run_not_found');
  return {
    events: eventsMode(headers, tool_calls),
    resumable: asksToResume(headers),
    ...(deadline_ms !== undefined && { deadline_ms }),
    ...(thread !== undefined && { thread }),
    ...(run !== undefined && { run }),
    ...(key !== undefined && { key }),
    ...(task && { task }),
  };
}

/** `Holdfast-Resume: 1`. */
function asksToResume(headers: IncomingHttpHeaders): boolean {
  const resume = single(headers['holdfast-resume']);
  if (resume !== undefined && resume !== '1') throw invalid('Holdfast-Resume', '1');
  return resume === '1';
}

/** `Holdfast-Events`, and `Holdfast-Tool-Calls`. */
function eventsMode(headers: IncomingHttpHeaders, preset: ToolCallsMode): EventsMode {
  const asked = single(headers['holdfast-events']) ?? 'none';
  const mode = EVENTS_MODES.find((candidate) => candidate === asked);
  if (!mode) throw invalid('Holdfast-Events', EVENTS_MODES.join(', '));
  const manner = single(headers['holdfast-tool-calls']);
  const calls = manner === undefined ? preset : TOOL_CALLS.find((candidate) => candidate === manner);
  if (!calls) throw invalid('Holdfast-Tool-Calls', TOOL_CALLS.join(', '));
  if (mode === 'none') return calls === 'live' ? 'live' : 'none';
  if (manner === 'held') throw invalid('Holdfast-Tool-Calls', 'live beside Holdfast-Events');
  return mode;
}

const CODEX = /^codex[ _-]/i;

/**
 * Special behaviour of known clients. Codex takes every `response.incomplete` for an output limit, and older versions
 * then repeat the request; after `context_length_exceeded` it suggests a new thread to its user.
 */
export const profileOf = (
  { originator, 'user-agent': agent }: IncomingHttpHeaders,
  { delivery }: Pick<Configuration, 'delivery'>,
): Pick<Run, 'failsWhenFull'> => {
  const isCodex = [originator, agent].some((name) => CODEX.test(String(name)));
  return isCodex && delivery.client_profiles ? { failsWhenFull: true } : {};
};

/** The conversation that a request belongs to. */
export interface Thread {
  readonly name: string;
  /**
   * The client did not choose the name for this purpose. Programs ask several models in one session, e.g. for the
   * answer and for its title, so notices wait for a request to the same model.
   */
  readonly isDerived: boolean;
}

/** `Holdfast-Thread`, or with `derive` the client's name for its session. Throws `invalid_field`. */
export function threadOf(headers: IncomingHttpHeaders, fields: Fields, derive: boolean): Thread | undefined {
  const thread = named('Holdfast-Thread', headers);
  if (thread !== undefined) return { name: thread, isDerived: false };
  const name = derive ? [...sessionHeaders(headers), ...sessionFields(fields)].find(isName) : undefined;
  return name === undefined ? undefined : { name, isDerived: true };
}

/**
 * Session headers of Claude Code, Codex and opencode. A sub-agent has its own conversation within the session of its
 * parent; Codex gives it a thread of its own.
 */
function sessionHeaders(headers: IncomingHttpHeaders): readonly unknown[] {
  const session = headers['x-claude-code-session-id'];
  const agent = headers['x-claude-code-agent-id'];
  const ofClaudeCode = isName(session) && isName(agent) ? `${session}/${agent}` : session;
  return [ofClaudeCode, headers['thread-id'], headers['session-id'], headers['x-session-id']];
}

/** Most specific first. */
function sessionFields(fields: Fields): readonly unknown[] {
  return [fields.prompt_cache_key, ...conversationFields(fields), fields.user];
}

function conversationFields({ conversation, metadata }: Fields): readonly unknown[] {
  return [
    isObject(conversation) ? conversation.id : conversation,
    isObject(metadata) ? metadata.session_id : undefined,
  ];
}

/** The request's name for its conversation, for traces. Names of caches or people are not exported. */
export function conversationOf(headers: IncomingHttpHeaders, fields: Fields): Pick<Run, 'conversation'> {
  const names = [headers['holdfast-thread'], ...sessionHeaders(headers), ...conversationFields(fields)];
  const conversation = names.find(isName);
  return conversation === undefined ? {} : { conversation };
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX;
