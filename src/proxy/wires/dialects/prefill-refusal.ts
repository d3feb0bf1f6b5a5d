/** How providers word "this model does not continue an assistant message", in a 400 or 422. */
const SIGNATURES = [
  /does not support assistant message prefill|conversation must end with a user message/i,
  /requests ending with a model turn are not supported/i,
  /must end with a user role|ends with a user role or a function response/i,
  /prefill is incompatible with enable_thinking/i,
  /cannot have 2 or more assistant messages at the end|cannot continue an assistant message that contains tool calls/i,
  /final .?assistant.? message must start with a thinking block/i,
  /expected last role user or tool/i,
  /must be a user message, or an assistant message with prefix mode on/i,
  // The request was accepted without the prefill, so what they do not know is one of its fields.
  /extra inputs are not permitted|(?:unknown|unrecognized|unsupported) (?:request )?(?:parameter|argument|field|name)\b/i,
  /property .{1,64} is unsupported/i,
];

export const refusesPrefill = (message: string): boolean =>
  SIGNATURES.some((signature) => signature.test(message));
