import { say } from '../cli/language.ts';
import type { Report } from '../cli/report.ts';
import { reportOf as reportOfImport } from '../import/report.ts';
import type { Item, ItemState, MoveInState } from './settings.ts';

export interface Result extends MoveInState {
  /** True if this run created the app. */
  isNew: boolean;
  items: Item[];
}

const marks: Record<ItemState, string> = { done: 'x', todo: ' ', check: '?' };

/**
 * Creates the report: a document without keys, and a check list. Refused records and an unfinished
 * import count as a bad outcome; remaining steps do not.
 */
export function reportOf(result: Result): Report {
  const { appId, app, isNew, outcome, items } = result;
  const imported = reportOfImport(outcome);
  const name = app?.name ?? null;
  const { isDry } = outcome;
  const document = {
    app: { appId, name, isNew },
    dryRun: isDry,
    import: imported.document,
    checkList: items,
  };
  const text = [
    summary(result),
    '',
    imported.text,
    '',
    say('What is left ([x] done, [ ] to do, [?] to be checked by you):'),
    ...items.flatMap(({ state, text, advice }) => [
      `[${marks[state]}] ${text}`,
      ...(state === 'done' || advice === undefined ? [] : [`      ${advice}`]),
    ]),
    '',
    ...(isDry
      ? []
      : [
          say(
            'Run the same command again whenever the export has more: nothing is imported twice.',
          ),
        ]),
  ].join('\n');
  return { document, text: text.trimEnd(), ...(imported.isBad ? { isBad: true } : {}) };
}

function summary({ appId, app, isNew, outcome }: Result): string {
  const name = app?.name ?? appId;
  if (!isNew) return say('App {name} ({appId}) is there already.', { name, appId });
  return outcome.isDry
    ? say('App {appId} would be made.', { appId })
    : say('App {name} ({appId}) was made.', { name, appId });
}
