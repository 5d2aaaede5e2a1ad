import { language } from '../cli/language.ts';
import type { ShownApp } from '../cli/service.ts';
import type { Outcome } from '../import/report.ts';

/** Push profile in a list of the admin API. */
export interface ProfileName {
  connector: string;
  name: string;
}

/** Input of the check list. */
export interface MoveInState {
  appId: string;
  /** Undefined in a dry run for an app that does not exist yet. */
  app: ShownApp | undefined;
  /** Origin of the keys: given in a file, of an existing app, or (some of them) created. */
  keys: 'given' | 'existing' | 'created';
  profiles: ProfileName[];
  outcome: Outcome;
  /** URL of the service. */
  url: string;
}

/** State of a step; `check` is for a person who knows the app, because the service cannot decide it. */
export type ItemState = 'done' | 'todo' | 'check';

/** Step of moving an app. */
export interface Item {
  /** Stable name for programs. */
  id: string;
  state: ItemState;
  /** Present state. */
  text: string;
  /** Action to take, as text or as a command. */
  advice?: string;
}

export const done = (id: string, text: string): Item => ({ id, state: 'done', text });

export const todo = (id: string, text: string, advice: string): Item => ({ id, state: 'todo', text, advice });

export const check = (id: string, text: string, advice: string): Item => ({
  id,
  state: 'check',
  text,
  advice,
});

/** Formats a number with its noun; a Chinese sentence has the noun itself. */
export const count = (n: number, noun: string): string =>
  language() === 'zh' ? n.toLocaleString('en') : `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
