import type { Invocation } from './command.ts';
import { ownerHeaders } from './owner-key.ts';
import { ReplicaPort } from './replica-port.ts';
import { runOperand } from './run-operand.ts';
import { tailStream } from './tail-stream.ts';
import { tailTimeline } from './tail-timeline.ts';

export function run(invocation: Invocation): Promise<void> {
  const id = runOperand(invocation);
  const json = invocation.switches.has('json');
  const owner = ownerHeaders(invocation, process.env);
  return owner
    ? tailStream(new ReplicaPort('api', invocation, process.env, owner), id, json)
    : tailTimeline(new ReplicaPort('admin', invocation, process.env), id, json);
}
