import { signatureOf } from '../../provider/wires/messages-events.ts';
import {
  blockStart,
  blockStop,
  end,
  input,
  signature,
  start,
  stop,
  textBlock,
  thinking,
  thinkingStart,
  toolBlock,
} from '../../proxy/wires/messages-raw.ts';
import type { Asked, ToldEvent } from './counting-provider.ts';
import type { ScriptPart, ToolScript } from './script.ts';

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly text?: string;
  readonly input?: { readonly key?: string };
  readonly tool_use_id?: string;
  readonly content?: unknown;
}

/** Encodes one answer as the events of a message; reasoning is signed. */
export function tellMessage(
  parts: readonly ScriptPart[],
  serial: number,
  { calls }: ToolScript,
): readonly ToldEvent[] {
  const told: ToldEvent[] = [{ frame: start({ id: `msg_${serial}` }) }];
  let index = 0;
  const add = (...frames: readonly string[]) => told.push(...frames.map((frame) => ({ frame })));
  for (const part of parts) {
    if (part.kind === 'text') add(...textBlock(index++, ...part.pieces));
    else if (part.kind === 'tool') {
      told.push(...toolEvents(part, serial, index));
      index += 2;
    } else {
      const said = part.pieces.map((piece) => thinking(index, piece));
      add(
        thinkingStart(index),
        ...said,
        signature(index, signatureOf(part.pieces.join(''))),
        blockStop(index),
      );
      index++;
    }
  }
  if (calls) add(...toolBlock(index, `toolu_${serial}`, '{"port":"Brest"}'));
  add(end(calls ? 'tool_use' : 'end_turn'), stop);
  return told;
}

function toolEvents(
  { key, shape }: Extract<ScriptPart, { kind: 'tool' }>,
  serial: number,
  index: number,
): readonly ToldEvent[] {
  const isMcp = shape === 'paired';
  const id = `${isMcp ? 'mcptoolu' : 'srvtoolu'}_${serial}_${index}`;
  const name = isMcp ? 'create_ticket' : 'bash_code_execution';
  const use = isMcp
    ? { type: 'mcp_tool_use', id, name, server_name: 'desk', input: {} }
    : { type: 'server_tool_use', id, name, input: {} };
  const result = isMcp
    ? {
        type: 'mcp_tool_result',
        tool_use_id: id,
        is_error: false,
        content: [{ type: 'text', text: `result of ${key}` }],
      }
    : {
        type: 'bash_code_execution_tool_result',
        tool_use_id: id,
        content: { type: 'bash_code_execution_result', stdout: `result of ${key}`, return_code: 0 },
      };
  const [before, after] = ['{"key":', `"${key}"}`];
  return [
    { frame: blockStart(index, use) },
    { frame: input(index, before) },
    { frame: input(index, after) },
    { frame: blockStop(index), runs: key },
    { frame: blockStart(index + 1, result) },
    { frame: blockStop(index + 1), settles: key },
  ];
}

/** Reads the part of the answer that a request returns. */
export function readMessagesRequest(body: unknown): Asked {
  const { messages } = body as { readonly messages: readonly { role: string; content: string | Block[] }[] };
  const last = messages.at(-1);
  const isPrefill = last?.role === 'assistant';
  const nudge = isPrefill ? '' : String(last?.content);
  const answer = messages.findLast(({ role }) => role === 'assistant');
  const blocks =
    typeof answer?.content === 'string' ? [{ type: 'text', text: answer.content }] : answer?.content;
  const keys: string[] = [];
  const uses = new Map<string, string>();
  let tail = '';
  for (const { type, id = '', text = '', input: given, tool_use_id = '', content } of (blocks ??
    []) as Block[]) {
    if (type === 'text') tail += text;
    if (type === 'server_tool_use' || type === 'mcp_tool_use') uses.set(id, given?.key ?? '');
    if (!type.endsWith('_tool_result')) continue;
    const key = uses.get(tool_use_id);
    const isItsOwn = key !== undefined && JSON.stringify(content).includes(`result of ${key}"`);
    keys.push(isItsOwn ? key : `a result of another: ${tool_use_id}`);
    tail = '';
  }
  return { keys, tail, nudge, isPrefill };
}
