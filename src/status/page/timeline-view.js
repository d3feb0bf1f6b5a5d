import { commandsOf, linkTo } from './api-hints.js';
import { showAxis } from './axis-view.js';
import { copies } from './copy.js';
import { byId, element, write } from './elements.js';
import { age, duration, number, words } from './format.js';
import { outcomeTone } from './tones.js';

const MODES = {
  first: '',
  prefill: 'prefill',
  nudge: 'nudge',
  replay: 'replay',
  restart: 'from the top',
  resume: 'resumed',
};

/** For each kind of entry: its title, a short form for the chain of events, and further details. */
const DESCRIPTIONS = {
  taken_over: ({ epoch, after_event }) => ({
    title: 'Taken over',
    link: 'taken over',
    more: `epoch ${epoch}, after event ${number(after_event)}`,
  }),
  attempt: ({ attempt, upstream, mode, model, compressed }) => ({
    title: `Attempt ${attempt}`,
    link: `attempt ${attempt}`,
    more: [upstream, model, MODES[mode] ?? words(mode), compressed ? 'conversation compressed' : '']
      .filter(Boolean)
      .join(' · '),
  }),
  answering: () => ({ title: 'Answering', tone: 'good' }),
  interrupted: ({ cause, phase, evidence, detail, status, added, seam }) => ({
    title: `Interrupted: ${words(cause)}`,
    link: words(cause),
    tone: 'bad',
    more: [
      `phase ${words(phase)}`,
      [words(evidence), detail].filter(Boolean).join(' '),
      status === undefined || detail === String(status) ? '' : `status ${status}`,
      `${number(added)} characters added`,
      seam ? `seam ${words(seam)}` : '',
    ]
      .filter(Boolean)
      .join(' · '),
  }),
  planned: ({ plan, why, wait_ms }) => ({
    title: plan === 'give_up' ? 'Given up' : plan === 'finish' ? 'Finished as it is' : `Plan ${plan}`,
    link: words(plan),
    tone: plan === 'give_up' ? 'bad' : 'warn',
    more: [PLANS[plan], why ? words(why) : '', wait_ms > 0 ? `waits ${duration(wait_ms)}` : '']
      .filter(Boolean)
      .join(' · '),
  }),
  recovered: ({ plan, mode, gap_ms }) => ({
    title: 'Recovered',
    tone: 'good',
    more: `${plan} · ${MODES[mode] || words(mode)} · gap ${duration(gap_ms)}`,
  }),
  whole: ({ added, seam }) => ({
    title: 'Answer whole',
    tone: 'good',
    more: [`${number(added)} characters added`, seam ? `seam ${words(seam)}` : '']
      .filter(Boolean)
      .join(' · '),
  }),
  ended: ({ outcome, finish }) => ({
    title: `Ended: ${words(outcome)}`,
    link: words(outcome),
    tone: outcomeTone(outcome),
    more: finish ? `finish reason ${finish}` : '',
  }),
};

const PLANS = {
  R1: 'continue the text',
  R2: 'finish with the closed tool calls',
  R3: 'cut before the open tool call',
  R4: 'start again',
};

/** The timeline's words for an entry: `title`, and `more` if there are details. */
export const describe = (entry) => DESCRIPTIONS[entry.kind]?.(entry) ?? { title: words(entry.kind) };

/** The shown run, and the links and commands from the status. */
let shownRun = '';
let hints;
copies(byId('copy-run'), () => shownRun);
copies(byId('copy-resume'), () => commandsOf(hints.api, location.hostname).resume(shownRun));

/** `status`: of the replica. */
export function showDetail(detail, status) {
  const {
    run,
    wire,
    model,
    created_at_ms,
    ended_at_ms,
    now_ms,
    characters,
    tool_calls,
    task,
    step,
    timeline,
    omitted,
    text,
  } = detail;
  byId('no-detail').hidden = true;
  byId('detail-body').hidden = false;
  byId('close-detail').hidden = false;
  write(byId('detail-run'), run);
  shownRun = run;
  hints = status;
  showLinks(status.links, detail);
  showAxis(byId('run-axis'), detail);
  const lasted =
    ended_at_ms === undefined ? age(now_ms - created_at_ms) : duration(ended_at_ms - created_at_ms);
  const calls = tool_calls > 0 ? ` · ${number(tool_calls)} tool calls` : '';
  const part = task ? ` · step ${step} of ${task}` : '';
  write(
    byId('detail-facts'),
    `${words(wire)} · ${model} · ${number(characters)} characters${calls} · ${lasted}${part}`,
  );
  // Omits the entry that the answer continues, because the next one says that it recovered.
  const entries = timeline.filter(
    ({ kind }, index) => kind !== 'answering' || timeline[index + 1]?.kind !== 'recovered',
  );
  const described = entries.map((entry) => ({ entry, ...describe(entry) }));
  const links = described.flatMap(({ link }) => (link ? [link] : []));
  write(byId('chain'), links.join(' ▸ '));
  showEntries(described, created_at_ms, omitted);
  const shown = byId('detail-text');
  shown.hidden = text === undefined;
  const quote = shown.querySelector('textarea');
  const isAtEnd = quote.scrollTop + quote.clientHeight >= quote.scrollHeight - 2;
  if (quote.value !== (text ?? '')) quote.value = text ?? '';
  if (isAtEnd) quote.scrollTop = quote.scrollHeight;
}

function showLinks({ trace_url, log_url }, detail) {
  const links = Object.entries({ Trace: linkTo(trace_url, detail), Log: linkTo(log_url, detail) });
  const shown = byId('links');
  const text = JSON.stringify(links);
  if (shown.dataset.text === text) return;
  shown.dataset.text = text;
  shown.replaceChildren(
    ...links
      .filter(([, href]) => href !== undefined)
      .map(([label, href]) => element('a', { href, target: '_blank', rel: 'noreferrer' }, label)),
  );
}

export function hideDetail(message) {
  byId('no-detail').hidden = false;
  write(byId('no-detail'), message);
  byId('detail-body').hidden = true;
  byId('close-detail').hidden = true;
}

function showEntries(described, created_at_ms, omitted) {
  const list = byId('timeline');
  const text = JSON.stringify(described);
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  const items = described.map(({ entry, title, tone = 'info', more = '' }) =>
    element(
      'li',
      { data: { tone } },
      element('span', { className: 'when' }, `+${duration(entry.at_ms - created_at_ms)}`),
      element('span', { className: 'what' }, title),
      ...(more ? [element('span', { className: 'quiet more' }, more)] : []),
    ),
  );
  if (omitted > 0)
    items.splice(12, 0, element('li', { className: 'quiet' }, `${number(omitted)} entries left out`));
  list.replaceChildren(...items);
}
