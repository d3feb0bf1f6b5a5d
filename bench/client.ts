// The load of the benchmark: opens streams over raw sockets, times their events and checks that each came whole.
import { connect } from 'node:net';
import type { ClientAnswer, ClientOrder, Quantiles } from './client-messages.ts';
import { micros } from './clock.ts';
import { ResponseReader } from './response-reader.ts';
import { FIRST_CONTENT, LAST_CONTENT, requestBytes, sentAt, sequenceAt } from './script.ts';
import { quantile } from './statistics.ts';

type OpenOrder = Extract<ClientOrder, { order: 'open' }>;

const CONTENT = '"content":"';

let window_start_us = micros();
let window_bytes = 0;
let latencies_us: number[] = [];
let lastWindowLatencies_us: number[] = [];
let first_token_us: number[] = [];
let broken: string[] = [];
let streams = 0;
let unopened = 0;
let unfinished = 0;
let finishOrdered = false;

const say = (answer: ClientAnswer) => process.send?.(answer);

function openAll(order: OpenOrder): void {
  first_token_us = [];
  broken = [];
  streams = order.streams;
  unopened = order.streams;
  unfinished = order.streams;
  finishOrdered = false;
  let opened = 0;
  const started_us = micros();
  const openDue = () => {
    const due = Math.ceil(((micros() - started_us) / 1000 / order.ramp_ms) * order.streams);
    while (opened < Math.min(due, order.streams)) {
      openOne(order, opened);
      opened += 1;
    }
    if (opened < order.streams) setTimeout(openDue, 1);
  };
  openDue();
}

function openOne(order: OpenOrder, index: number): void {
  const { interval_us, arrival_step_us } = order;
  const phase_us = Math.floor((index * interval_us) / order.streams / arrival_step_us) * arrival_step_us;
  let requested_us = 0;
  let received_us = 0;
  let expected = 0;
  let total = -1;
  let ending = '';

  const reader = new ResponseReader((event) => {
    const content = event.indexOf(CONTENT) + CONTENT.length;
    if (event.startsWith(FIRST_CONTENT, content)) {
      if (sequenceAt(event, content) !== expected) {
        throw new Error(`event ${expected} is missing, came ${event.slice(content)}`);
      }
      latencies_us.push(received_us - sentAt(event, content));
      if (expected === 0) {
        first_token_us.push(received_us - requested_us);
        noteOpened();
      }
      expected += 1;
    } else if (event.startsWith(LAST_CONTENT, content)) {
      total = Number.parseInt(event.slice(content + LAST_CONTENT.length), 10);
    } else if (event.includes('"finish_reason":"stop"')) {
      ending += 'finish ';
    } else if (event.includes('data: [DONE]')) {
      ending += 'done';
    }
  });

  const socket = connect(order.port, '127.0.0.1', () => {
    requested_us = micros();
    socket.write(requestBytes({ interval_us, phase_us, events: order.events }));
  });
  socket.setNoDelay();
  socket.on('data', (bytes) => {
    received_us = micros();
    window_bytes += bytes.length;
    try {
      reader.feed(bytes);
      if (reader.complete) socket.end();
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  let failure: string | undefined;
  socket.on('error', (error) => {
    failure = error.message;
  });
  socket.on('close', () => {
    const whole = reader.complete && total === expected && total === order.events && ending === 'finish done';
    if (!whole) {
      const state = `${expected} events, total ${total}, ending "${ending}", complete ${reader.complete}`;
      broken.push(`stream ${index}: ${failure ?? 'truncated'} (${state})`);
    }
    if (expected === 0) noteOpened();
    unfinished -= 1;
    reportOutcome();
  });
}

function noteOpened(): void {
  unopened -= 1;
  if (unopened === 0) say({ answer: 'opened' });
}

function mark(): void {
  const now_us = micros();
  const duration_us = now_us - window_start_us;
  window_start_us = now_us;
  lastWindowLatencies_us = latencies_us;
  latencies_us = [];
  say({ answer: 'marked', events: lastWindowLatencies_us.length, bytes: window_bytes, duration_us });
  window_bytes = 0;
}

function reportOutcome(): void {
  if (unfinished > 0 || !finishOrdered) return;
  say({
    answer: 'finished',
    first_token_us: quantiles(first_token_us),
    latency_us: quantiles(lastWindowLatencies_us),
    streams,
    broken,
  });
}

function quantiles(values: readonly number[]): Quantiles {
  const sorted = Float64Array.from(values).sort();
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), p999: quantile(sorted, 0.999) };
}

process.on('message', (order: ClientOrder) => {
  if (order.order === 'open') openAll(order);
  else if (order.order === 'mark') mark();
  else {
    finishOrdered = true;
    reportOutcome();
  }
});
