import { announceNow } from './announcer.js';
import { element, write } from './elements.js';

const SHOWN_MS = 2000;

/** Makes `button` copy the result of `textOf`. */
export function copies(button, textOf) {
  const label = button.textContent;
  let timer;
  button.addEventListener('click', async () => {
    const isDone = await copy(textOf());
    write(button, isDone ? 'Copied' : 'Not allowed');
    announceNow(isDone ? 'Copied.' : 'The browser does not allow to copy.');
    clearTimeout(timer);
    timer = setTimeout(() => write(button, label), SHOWN_MS);
  });
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP, browsers only allow copying a selection.
    return copySelected(text);
  }
}

function copySelected(text) {
  const focused = document.activeElement;
  const field = element('textarea', { className: 'unseen', value: text, ariaLabel: 'What is copied' });
  document.body.append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  focused?.focus();
  return isDone;
}
