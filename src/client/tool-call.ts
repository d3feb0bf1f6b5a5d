/** A tool call, as chat completions, responses, messages, or frameworks have it. */
export type ToolCall =
  | { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }
  | { readonly call_id: string; readonly name: string; readonly arguments: string }
  | { readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }
  | { readonly id?: string | undefined; readonly name: string; readonly args: unknown };

/** What all these forms say. */
export interface ReadToolCall {
  readonly name: string;
  readonly args: unknown;
  /** The same for calls that say the same, whatever the order of their keys. */
  readonly content: string;
}

/** Throws a `TypeError` for what is no tool call, or one whose arguments are not JSON. */
export function toolCallOf(call: ToolCall): ReadToolCall {
  const fields: Readonly<Record<string, unknown>> = { ...call };
  const described = fields.function ?? fields;
  const {
    name = fields.toolName,
    arguments: text,
    input = fields.args,
  } = described as Record<string, unknown>;
  if (typeof name !== 'string' || name === '') throw new TypeError('call must be a tool call with a name');
  const args = typeof text === 'string' ? argumentsOf(name, text) : (text ?? input ?? {});
  const id = fields.call_id ?? fields.toolCallId ?? fields.id ?? null;
  return { name, args, content: JSON.stringify([name, id, inOrder(args)]) };
}

function argumentsOf(name: string, text: string): unknown {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new TypeError(`the arguments of '${name}' must be JSON`, { cause });
  }
}

/** With the keys of all objects in one order. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, field]) => [key, inOrder(field)] as const);
  return Object.fromEntries(entries.sort(([left], [right]) => (left < right ? -1 : 1)));
}
