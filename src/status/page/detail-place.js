import { byId, element } from './elements.js';

const detail = byId('detail');
const side = detail.parentNode;
/** Must match status.css. */
export const NARROW = matchMedia('(max-width: 45rem)');

/** Beside the list if there is room. In a narrow window, below the chosen row or step. */
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
