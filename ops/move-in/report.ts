import type { Report } from '../cli/report.ts';
import { reportOf as reportOfImport } from '../import/report.ts';
import type { Item, ItemState, Situation } from './item.ts';

export interface Result extends Situation {
  /** The app was not there before. */
  isMade: boolean;
  items: Item[];
}

const marks: Record<ItemState, string> = { done: 'x', todo: ' ', check: '?' };

/**
 * What moving in did and what is left: a document without keys, and a check list for people. What is left to do is no bad
 * outcome; refused records and an import that is not finished are.
 */
export function reportOf(result: Result): Report {
  const { appId, app, isMade, outcome, items } = result;
  const imported = reportOfImport(outcome);
  const name = app?.name ?? null;
  const { isDry } = outcome;
  const document = {
    app: { appId, name, isNew: isMade },
    dryRun: isDry,
    import: imported.document,
    checkList: items,
  };
  const text = [
    sentence(result),
    '',
    imported.text,
    '',
    'What is left ([x] done, [ ] to do, [?] to be checked by you):',
    ...items.flatMap(({ state, text, advice }) => [
      `[${marks[state]}] ${text}`,
      ...(state === 'done' || advice === undefined ? [] : [`      ${advice}`]),
    ]),
    '',
    ...(isDry ? [] : ['Run the same command again whenever the export has more: nothing is imported twice.']),
  ].join('\n');
  return { document, text: text.trimEnd(), ...(imported.isBad ? { isBad: true } : {}) };
}

function sentence({ appId, app, isMade, outcome }: Result): string {
  if (!isMade) return `App ${app?.name ?? appId} (${appId}) is there already.`;
  return outcome.isDry ? `App ${appId} would be made.` : `App ${app?.name ?? appId} (${appId}) was made.`;
}
