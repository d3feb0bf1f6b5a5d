/** Lets one thing happen at a time, in the order in which it was asked for. */
export interface Turns {
  isTaken: boolean;
  waiting: (() => void)[] | undefined;
}

/** Calls `start` when its turn has come, at once if the turn is free. What is started must call {@link endTurn}. */
export function takeTurn(turns: Turns, start: () => void): void {
  if (turns.isTaken) {
    turns.waiting ??= [];
    turns.waiting.push(start);
    return;
  }
  turns.isTaken = true;
  start();
}

export function endTurn(turns: Turns): void {
  turns.isTaken = false;
  const next = turns.waiting?.shift();
  if (next) takeTurn(turns, next);
}
