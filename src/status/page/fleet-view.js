import { byId, chip, element } from './elements.js';
import { fill } from './fill.js';
import { age, number } from './format.js';

const TONES = { serving: 'good', draining: 'warn', dead: 'bad', unreachable: 'bad' };

/** The replicas that share the store. `isLost`: the page has heard nothing for a while. */
export function showFleet(fleet, now_ms, isLost) {
  fill(
    'fleet',
    fleet.map((member) => {
      const { name, self, release, started_at_ms, runs } = member;
      const state = !isLost ? member.state : self ? 'unreachable' : 'unknown';
      const isUp = state === 'serving' || state === 'draining';
      const up = isUp ? age(now_ms - started_at_ms) : '–';
      return {
        text: [member, state, up],
        make: () =>
          element(
            'tr',
            { data: { state } },
            element(
              'th',
              { scope: 'row', className: 'replica' },
              element('bdi', { className: 'mono', title: `${name}, release ${release}` }, name),
              ...(self ? [element('span', { className: 'quiet after' }, 'this page')] : []),
            ),
            element('td', {}, chip(state, TONES[state] ?? 'quiet')),
            element('td', { className: 'number' }, isUp && runs !== undefined ? number(runs) : '–'),
            element('td', { className: 'number' }, up),
          ),
      };
    }),
  );
  const dead = fleet.filter(({ state }) => state === 'dead').length;
  byId('fleet-note').textContent =
    fleet.length === 1
      ? 'no other replica shares its store'
      : dead > 0
        ? `${dead} of ${fleet.length} dead`
        : `${fleet.length} share the store`;
}
