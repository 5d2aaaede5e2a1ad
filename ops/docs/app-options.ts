import {
  type AppOptions,
  appOptionsPatch,
  effectiveOptions,
  movedInOptions,
  ownerOptions,
  planLimits,
} from '../../shared/domain/apps/app.ts';
import { code, grouped, page, table } from './markdown.ts';
import { membersOf, shapeOf } from './schema.ts';

const intro = `Options are set with \`npx carillon app set <appId> <option>=<value>\` or \`PATCH /console/api/apps/:appId\`
(\`{"options":{…}}\`). Every process uses a changed option within a second. An option of the wrong type or an unknown one is
refused with 400. An option that would let an operator read secrets, take over accounts, spend money or pass an approval is changed by owners only (403). Where the default depends on the plan, both are given: commercial / development.`;

/** Renders the app options with type, default and meaning. */
export function appOptionsPage(): string {
  const commercial = effectiveOptions('commercial', {});
  const development = effectiveOptions('development', {});
  const rows = membersOf(shapeOf(appOptionsPatch)).map(({ name, type, meaning }) => [
    code(name),
    type,
    defaultOf(name, commercial, development),
    ownerOptions.has(name) ? 'owner' : 'operator',
    meaning,
  ]);
  return page(
    'Options of an app',
    intro,
    table(['option', 'type', 'default', 'changed by', 'meaning'], rows),
    '## Apps that move in',
    `An app that is created with an \`appId\` of its own begins with ${pairs(movedInOptions)}.`,
    '## Limits of a plan',
    limits(),
  );
}

function defaultOf(name: string, commercial: AppOptions, development: AppOptions): string {
  const [one, other] = [commercial, development].map(
    (options) => Object.entries(options).find(([key]) => key === name)?.[1],
  );
  const texts = [one, other].map((value) => code(JSON.stringify(value)));
  return texts[0] === texts[1] ? (texts[0] ?? '') : texts.join(' / ');
}

const pairs = (options: object): string =>
  Object.entries(options)
    .map(([name, value]) => code(`${name}: ${JSON.stringify(value)}`))
    .join(', ');

const limitMeanings: Record<keyof (typeof planLimits)['commercial'], string> = {
  pushCallsPerMinute: 'default of `pushCallsPerMinute`',
  maxPushCallsPerMinute: 'most that `pushCallsPerMinute` may be',
  dailyRecipientCap: 'default of `dailyRecipientCap`; on a development app also its most',
  pending: 'scheduled pushes at a time',
  maxValidityDays: 'most that `installationValidityDays` may be',
};

function limits(): string {
  const { commercial, development } = planLimits;
  const rows = [
    ['pushCallsPerMinute', commercial.pushCallsPerMinute, development.pushCallsPerMinute],
    ['maxPushCallsPerMinute', commercial.maxPushCallsPerMinute, development.maxPushCallsPerMinute],
    ['dailyRecipientCap', commercial.dailyRecipientCap, development.dailyRecipientCap],
    ['pending', commercial.pending, development.pending],
    ['maxValidityDays', commercial.maxValidityDays, development.maxValidityDays],
  ] as const;
  return table(
    ['limit', 'commercial', 'development'],
    rows.map(([name, one, other]) => [limitMeanings[name], grouped(one), grouped(other)]),
  );
}
