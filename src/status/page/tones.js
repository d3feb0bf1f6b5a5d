const STATES = {
  asking: 'info',
  answering: 'good',
  interrupted: 'warn',
  waiting: 'warn',
  finishing: 'quiet',
};

const OUTCOMES = {
  complete: 'good',
  recovered: 'rescued',
  salvaged: 'rescued',
  failed: 'bad',
  rejected: 'bad',
  cancelled: 'quiet',
};

export const stateTone = (state) => STATES[state] ?? 'quiet';
export const outcomeTone = (outcome) => OUTCOMES[outcome] ?? 'quiet';

const BREAKERS = { closed: 'good', half_open: 'warn', open: 'bad' };
export const breakerTone = (state) => BREAKERS[state] ?? 'quiet';

const TASKS = { answering: 'good', recovering: 'warn', failed: 'bad' };
export const taskTone = (state) => TASKS[state] ?? 'quiet';
