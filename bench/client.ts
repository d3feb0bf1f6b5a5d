// The benchmark's load: opens streams over raw sockets, times their events and checks that each arrives whole.
import { connect } from 'node:net';
import { AnswerCheck } from './answer-check.ts';
import type { ClientAnswer, ClientOrder, Quantiles } from './client-messages.ts';
import { micros } from './clock.ts';
import { requestBytes } from './script.ts';
import { quantile } from './statistics.ts';

type OpenOrder = Extract<ClientOrder, { order: 'open' }>;

let window_start_us = micros();
let window_bytes = 0;
let windowStreams = 0;
let latencies_us: number[] = [];
let first_tokens_us: number[] = [];
let ended: { readonly latencies_us: number[]; readonly first_tokens_us: number[] }[] = [];
let broken: string[] = [];
let streams = 0;
let unopened = 0;
let unfinished = 0;
let finishOrdered = false;
let questions = 0;

const say = (answer: ClientAnswer) => process.send?.(answer);

function openAll(order: OpenOrder): void {
  broken = [];
  streams = 0;
  unopened = order.connections;
  unfinished = order.connections;
  finishOrdered = false;
  let opened = 0;
  const started_us = micros();
  const openDue = () => {
    const due = Math.ceil(((micros() - started_us) / 1000 / order.ramp_ms) * order.connections);
    while (opened < Math.min(due, order.connections)) {
      openOne(order, opened);
      opened += 1;
    }
    if (opened < order.connections) setTimeout(openDue, 1);
  };
  openDue();
}

function openOne(order: OpenOrder, index: number): void {
  const { interval_us, arrival_step_us, events } = order;
  const phase_us = Math.floor((index * interval_us) / order.connections / arrival_step_us) * arrival_step_us;
  let requested_us = 0;
  let received_us = 0;
  let isOpened = false;

  const noteContent = (sequence: number, sent_us: number) => {
    latencies_us.push(received_us - sent_us);
    if (sequence === 0) {
      first_tokens_us.push(received_us - requested_us);
      noteOpened();
    }
  };
  const noteOpened = () => {
    if (isOpened) return;
    isOpened = true;
    unopened -= 1;
    if (unopened === 0) say({ answer: 'opened' });
  };

  let answer = new AnswerCheck(events, noteContent);
  const ask = () => {
    streams += 1;
    answer = new AnswerCheck(events, noteContent);
    const request = requestBytes({ interval_us, phase_us, events, question: questions++ }, order.headers);
    requested_us = micros();
    socket.write(request);
  };
  const noteEnd = (failure?: string) => {
    const fault = answer.fault();
    if (fault !== undefined) broken.push(`stream ${index}: ${failure ?? 'truncated'} (${fault})`);
    else windowStreams += 1;
  };

  const socket = connect(order.port, '127.0.0.1', ask);
  socket.setNoDelay();
  socket.on('data', (bytes) => {
    received_us = micros();
    window_bytes += bytes.length;
    try {
      answer.feed(bytes);
      if (!answer.complete) return;
      if (!order.repeat || finishOrdered) socket.end();
      else {
        noteEnd();
        ask();
      }
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  let failure: string | undefined;
  socket.on('error', (error) => {
    failure = error.message;
  });
  socket.on('close', () => {
    noteEnd(failure);
    noteOpened();
    unfinished -= 1;
    reportOutcome();
  });
}

function mark(): void {
  const now_us = micros();
  const duration_us = now_us - window_start_us;
  say({
    answer: 'marked',
    events: latencies_us.length,
    streams: windowStreams,
    bytes: window_bytes,
    duration_us,
  });
  ended.push({ latencies_us, first_tokens_us });
  window_start_us = now_us;
  window_bytes = 0;
  windowStreams = 0;
  latencies_us = [];
  first_tokens_us = [];
}

/** Separate from `mark`, because sorting takes time and no stream should wait for it. */
function reportTimings(): void {
  const windows = ended.map((window) => ({
    first_token_us: quantiles(window.first_tokens_us),
    latency_us: quantiles(window.latencies_us),
  }));
  ended = [];
  say({ answer: 'timings', windows });
}

function reportOutcome(): void {
  if (unfinished > 0 || !finishOrdered) return;
  say({ answer: 'finished', streams, broken });
}

function quantiles(values: readonly number[]): Quantiles {
  const sorted = Float64Array.from(values).sort();
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), p999: quantile(sorted, 0.999) };
}

process.on('message', (order: ClientOrder) => {
  if (order.order === 'open') openAll(order);
  else if (order.order === 'mark') mark();
  else if (order.order === 'timings') reportTimings();
  else {
    finishOrdered = true;
    reportOutcome();
  }
});
