/** How providers word "this model does not continue an assistant message", in a 400. */
const SIGNATURES = [
  /does not support assistant message prefill|conversation must end with a user message/i,
  /requests ending with a model turn are not supported/i,
  /must end with a user role|ends with a user role or a function response/i,
  /prefill is incompatible with enable_thinking/i,
  /cannot have 2 or more assistant messages at the end|cannot continue an assistant message that contains tool calls/i,
  /final .?assistant.? message must start with a thinking block/i,
];

export const refusesPrefill = (message: string): boolean =>
  SIGNATURES.some((signature) => signature.test(message));
