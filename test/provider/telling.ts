import { setImmediate } from 'node:timers/promises';
import type { Channel } from './channel.ts';
import type { Plan } from './script.ts';
import type { Step } from './steps.ts';

export type Pace = Pick<Plan, 'delay_ms' | 'write'>;

/** How much of the body the kernel has taken so far. */
export interface Sent {
  bytes: number;
}

/** Waits until the next `length` bytes can be sent. Resolves with `false` if they never can. */
export type Gate = (length: number) => Promise<boolean>;

/** Performs the steps. Resolves with `true` if the answer reached its proper end. */
export async function tell(
  steps: readonly Step[],
  channel: Channel,
  pace: Pace,
  sent: Sent,
  gate?: Gate,
): Promise<boolean> {
  const delay_ms = pace.delay_ms ?? 0;
  const write = pace.write ?? (delay_ms > 0 ? 'event' : 'whole');
  let due_ms = performance.now();
  for (const step of inWrites(steps, write)) {
    if (step.kind === 'send') {
      due_ms += delay_ms;
      const early_ms = due_ms - performance.now();
      if (delay_ms > 0 && early_ms > 0) await channel.wait(early_ms);
      // A client in this process reads between two turns of the event loop.
      else if (write !== 'whole') await setImmediate();
    }
    if (gate && step.kind === 'send' && !(await gate(step.bytes.length))) {
      channel.end();
      return false;
    }
    if (channel.gone) return false;
    await perform(step, channel, sent);
  }
  return !channel.gone && steps.at(-1)?.kind === 'end';
}

async function perform(step: Step, channel: Channel, sent: Sent): Promise<void> {
  switch (step.kind) {
    case 'head':
      return channel.head(step.status, step.headers);
    case 'send':
      await channel.write(step.bytes);
      sent.bytes += step.bytes.length;
      return;
    case 'hold':
      return hold(step, channel);
    case 'goaway':
      return channel.goaway();
    case 'end':
      return channel.end();
    case 'cut':
      return channel.cut(step.how);
  }
}

async function hold(step: Extract<Step, { kind: 'hold' }>, channel: Channel): Promise<void> {
  const until_ms = performance.now() + (step.for_ms ?? Number.POSITIVE_INFINITY);
  if (!step.sign) return step.for_ms === undefined ? channel.untilGone() : channel.wait(step.for_ms);
  while (!channel.gone && performance.now() < until_ms) {
    await channel.write(step.sign);
    // The write may take longer than the time that was left.
    await channel.wait(Math.max(0, Math.min(step.every_ms, until_ms - performance.now())));
  }
}

/** The same bytes, with one `send` per write. */
function inWrites(steps: readonly Step[], write: NonNullable<Pace['write']>): readonly Step[] {
  if (write === 'event') return steps;
  if (write === 'whole') return merged(steps);
  return steps.flatMap((step): Step[] =>
    step.kind === 'send'
      ? Array.from(step.bytes, (byte): Step => ({ kind: 'send', bytes: Buffer.of(byte) }))
      : [step],
  );
}

/** Merges neighbouring sends into one write. */
function merged(steps: readonly Step[]): Step[] {
  const all: Step[] = [];
  let pending: Buffer[] = [];
  for (const step of [...steps, undefined]) {
    if (step?.kind === 'send') {
      pending.push(step.bytes);
      continue;
    }
    if (pending.length > 0) all.push({ kind: 'send', bytes: Buffer.concat(pending) });
    pending = [];
    if (step) all.push(step);
  }
  return all;
}
