import type { AppReply } from '../cli/service.ts';
import type { Outcome } from '../import/report.ts';

/** A push profile as the admin API lists it. */
export interface ProfileName {
  connector: string;
  name: string;
}

/** What is known when the list is written. */
export interface Situation {
  appId: string;
  /** Undefined in a dry run for an app that is not there yet. */
  app: AppReply | undefined;
  /** What became of the keys: given in a file, there before, or made, for some or all of them. */
  keys: 'given' | 'there' | 'made';
  profiles: ProfileName[];
  outcome: Outcome;
  /** Where the service is reached from here. */
  url: string;
}

/** Done; to be done; or to be looked at by somebody who knows the app, since nothing here can tell. */
export type ItemState = 'done' | 'todo' | 'check';

/** A step of moving in. */
export interface Item {
  /** Stable name for programs. */
  id: string;
  state: ItemState;
  /** What is so, as a sentence. */
  text: string;
  /** What to do about it: a sentence or a command. */
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

/** A number with its noun. */
export const count = (n: number, noun: string): string =>
  `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
