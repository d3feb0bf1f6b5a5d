import { modelOf } from '../e2e/deployment.ts';
import { streamRequest } from '../e2e/raw-client.ts';
import { callsOf, callTo, TIDES, textOf } from '../e2e/situations.ts';
import type { Plan } from '../provider/script.ts';
import { readStream, type StreamReading } from '../simulation/stream-reading.ts';

const CHARACTERS_PER_EVENT = 20;

/**
 * An answer that takes about `duration_ms`, from a model that accepts prefills. Every other answer ends with a tool
 * call.
 */
export function answerOf(serial: number, duration_ms: number, event_ms: number): Plan {
  const characters = Math.ceil(duration_ms / event_ms) * CHARACTERS_PER_EVENT;
  let text = '';
  for (let word = 0; text.length < characters; word++) text += `w${serial}-${word} 満潮 `;
  const calls = serial % 2 === 0 ? [] : [{ tool: callTo(`call_${serial}`, 'Brest') }];
  return {
    parts: [{ text: text.trimEnd() }, ...calls],
    chunk: CHARACTERS_PER_EVENT,
    delay_ms: event_ms,
    prefill: 'vllm',
  };
}

export const requestOf = (question: string) =>
  streamRequest(modelOf('vllm'), question, { tools: [{ type: 'function', function: TIDES }] });

/** Reads the complete lines of a stream, however it ended. */
export const readWhat = (body: string): StreamReading =>
  readStream(body.slice(0, body.lastIndexOf('\n') + 1));

/** The defect of an answer that has to be complete: all its text, each call once, and one end. */
export function faultOf(reading: StreamReading, plan: Plan): string | undefined {
  const { violations, error, text, toolCalls, finish, usage, done } = reading;
  const calls = callsOf(plan);
  if (violations.length > 0) return violations.join(', ');
  if (error) return JSON.stringify(error);
  if (text !== textOf(plan)) return `text of ${text.length} characters, not ${textOf(plan).length}`;
  if (JSON.stringify(toolCalls) !== JSON.stringify(calls)) return `calls: ${JSON.stringify(toolCalls)}`;
  if (finish !== (calls.length > 0 ? 'tool_calls' : 'stop')) return `finish ${finish}`;
  if (!usage) return 'no usage';
  return done ? undefined : 'no [DONE]';
}

/** The defect of an answer that was cut: a false end, or content that the whole answer lacks. */
export function partFaultOf(
  { violations, text, toolCalls, finish, done }: StreamReading,
  plan: Plan,
): string | undefined {
  if (violations.length > 0) return violations.join(', ');
  if (done || finish !== undefined) return `a false end: finish ${finish}, [DONE] ${done}`;
  if (!textOf(plan).startsWith(text)) return 'text that is not a part of the answer';
  return toolCalls.length <= callsOf(plan).length ? undefined : `calls: ${JSON.stringify(toolCalls)}`;
}
