import { byId, element } from './elements.js';

const detail = byId('detail');
const side = detail.parentNode;
/** As in status.css. */
export const NARROW = matchMedia('(max-width: 45rem)');

/** Beside the runs where there is room; in a narrow window below the row or the step that is chosen. */
export function placeDetail(chosen) {
  const line = NARROW.matches && chosen ? document.querySelector('tr.chosen[data-run], .step.chosen') : null;
  const cell = line?.matches('tr') ? detailCell(line) : line;
  if (!cell) {
    if (detail.parentNode !== side) side.prepend(detail);
  } else if (detail.parentNode !== cell) cell.append(detail);
  for (const empty of document.querySelectorAll('.detail-cell:empty')) empty.remove();
}

const detailCell = (row) =>
  row.querySelector('.detail-cell') ?? row.appendChild(element('td', { className: 'detail-cell' }));
