import { isObject } from '../../../src/lib/json.ts';
import { begin, call, completed, itemsOf, message, reasoning } from '../../proxy/wires/responses-items.ts';
import { framed, type Payload } from '../responses-told.ts';
import type { Asked, ToldEvent } from './counting-provider.ts';
import type { ScriptPart, ToolScript } from './script.ts';

type Json = Readonly<Record<string, unknown>>;
type Moment = Omit<ToldEvent, 'frame'>;

const NOTHING: Moment = {};

/** Encodes one answer as the events of a response. */
export function tellResponse(
  parts: readonly ScriptPart[],
  serial: number,
  { calls, seals }: ToolScript,
): readonly ToldEvent[] {
  const told: (readonly [Payload, Moment])[] = begin(serial).map((event) => [event, NOTHING]);
  let index = 0;
  for (const part of parts) {
    if (part.kind === 'tool') {
      const events = toolEvents(part, serial, index);
      told.push(...events);
      index += part.shape === 'paired' ? 2 : 1;
      continue;
    }
    const events =
      part.kind === 'text'
        ? message(`msg_${serial}_${index}`, index, part.pieces)
        : thoughts(`rs_${serial}_${index}`, index, part.pieces, seals);
    told.push(...events.map((event) => [event, NOTHING] as const));
    index++;
  }
  if (calls)
    told.push(
      ...call(`${serial}`, index, ['{"city":', '"Brest"}']).map((event) => [event, NOTHING] as const),
    );
  const events = told.map(([event]) => event);
  const frames = framed([...events, completed(serial, itemsOf(events))]);
  return frames.map((frame, at) => ({ frame, ...told[at]?.[1] }));
}

/** Reasoning without its encrypted content can't be returned to the provider. */
function thoughts(id: string, index: number, pieces: readonly string[], seals: boolean): Payload[] {
  const events = reasoning(id, index, pieces);
  if (seals) return events;
  return events.map((event) => {
    if (!isObject(event.item)) return event;
    const { encrypted_content: _, ...item } = event.item;
    return { ...event, item };
  });
}

function toolEvents(
  { key, shape }: Extract<ScriptPart, { kind: 'tool' }>,
  serial: number,
  output_index: number,
): (readonly [Payload, Moment])[] {
  const id = `${shape === 'paired' ? 'sh' : 'mcp'}_${serial}_${output_index}`;
  const output = `result of ${key}`;
  if (shape === 'paired') {
    const use = {
      id,
      type: 'shell_call',
      call_id: `call_${id}`,
      environment: { type: 'container_reference' },
    };
    const action = { commands: [`run ${key}`] };
    const result = { id: `sho_${id}`, type: 'shell_call_output', call_id: use.call_id };
    const at = { output_index: output_index + 1 };
    const added = 'response.output_item.added';
    const done = 'response.output_item.done';
    return [
      [{ type: added, output_index, item: { ...use, status: 'in_progress', action: {} } }, NOTHING],
      [{ type: done, output_index, item: { ...use, status: 'completed', action } }, { runs: key }],
      [{ type: added, ...at, item: { ...result, status: 'in_progress' } }, NOTHING],
      [
        { type: done, ...at, item: { ...result, status: 'completed', output: [{ stdout: output }] } },
        { settles: key },
      ],
    ];
  }
  const place = { item_id: id, output_index };
  const item = { id, type: 'mcp_call', name: 'create_ticket', server_label: 'desk', arguments: '' };
  const json = JSON.stringify({ key });
  const whole = { ...item, arguments: json, output, status: 'completed' };
  return [
    [{ type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress' } }, NOTHING],
    [{ type: 'response.mcp_call.in_progress', ...place }, { runs: key }],
    [{ type: 'response.mcp_call_arguments.delta', ...place, delta: json }, NOTHING],
    [{ type: 'response.mcp_call_arguments.done', ...place, arguments: json }, NOTHING],
    [{ type: 'response.mcp_call.completed', ...place }, NOTHING],
    [{ type: 'response.output_item.done', output_index, item: whole }, { settles: key }],
  ];
}

/** Reads the part of the answer that a request returns. */
export function readResponsesRequest(body: unknown): Asked {
  const { input } = body as { readonly input: readonly Json[] };
  const keys: string[] = [];
  let tail = '';
  let nudge = '';
  for (const item of input) {
    if (item.type === 'mcp_call') keys.push(keyIn(item.arguments, `result of `, item.output));
    if (item.type === 'shell_call_output') keys.push(keyIn('', 'result of ', JSON.stringify(item.output)));
    if (item.type === 'mcp_call' || item.type === 'shell_call_output') tail = '';
    if (item.role === 'assistant') tail += String(item.content);
    if (item.role === 'user') nudge = String(item.content);
  }
  return { keys, tail, nudge, isPrefill: false };
}

function keyIn(json: unknown, before: string, output: unknown): string {
  const [, key = ''] = new RegExp(`${before}(key\\d+)`).exec(String(output)) ?? [];
  if (json !== '' && !String(json).includes(`"${key}"`)) return `a result of another: ${key}`;
  return key;
}
