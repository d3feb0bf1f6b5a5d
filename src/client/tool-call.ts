/** A tool call in the form of chat completions, responses, messages, or a framework. */
export type ToolCall =
  | { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }
  | { readonly call_id: string; readonly name: string; readonly arguments: string }
  | { readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }
  | { readonly id?: string | undefined; readonly name: string; readonly args: unknown };

/** What all these forms have in common. */
export interface ReadToolCall {
  readonly name: string;
  readonly args: unknown;
  /** The same for calls with the same content, regardless of the order of their keys. */
  readonly content: string;
}

/** Throws a `TypeError` if this isn't a tool call, or its arguments aren't JSON. */
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

/** Sorts the keys of all objects. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, field]) => [key, inOrder(field)] as const);
  return Object.fromEntries(entries.sort(([left], [right]) => (left < right ? -1 : 1)));
}
