import { argument, members, page, required, timeAhead } from '../../arguments.ts';
import { group } from '../../command.ts';
import { say } from '../../language.ts';
import type { AddCommand } from '../../report.ts';
import { type Columns, type Given, row } from '../../row.ts';

interface Saved {
  name: string;
  updatedAt: string;
  updatedBy: string;
}

const columns: Columns<Saved> = { name: 'name', by: 'updatedBy', at: 'updatedAt' };
const none = 'Nothing is saved.';

const name = () => ({ name: argument('<name>') });
const saved = (_reply: object, given: Given) => say('{name} is saved.', { name: given.name });
const deleted = (_reply: object, given: Given) => say('{name} is deleted.', { name: given.name });
const content = () => members('<content>', 'a JSON object, or the file of one');

/** `carillon template …`, `saved-audience …` and `test-device …`: saved parts of pushes. */
export const savedCommands: AddCommand[] = [
  group('template', 'push-templates of an application'),
  row('template list', 'list them by name', { operation: 'listPushTemplates', columns, none }),
  row('template show', 'show one', {
    example: 'template show Sale',
    operation: 'getPushTemplate',
    path: name(),
  }),
  row('template put', 'save the body of a push: a JSON object, or the file of one', {
    example: `template put Sale '{"data":{"alert":"Hello"}}'`,
    operation: 'putPushTemplate',
    path: name(),
    body: { body: content() },
    show: saved,
  }),
  row('template delete', 'delete one', {
    example: 'template delete Sale',
    operation: 'deletePushTemplate',
    path: name(),
    show: deleted,
  }),
  group('saved-audience', 'audiences of an application'),
  row('saved-audience list', 'list them by name', { operation: 'listAudiences', columns, none }),
  row('saved-audience show', 'show one', {
    example: 'saved-audience show Readers',
    operation: 'getAudience',
    path: name(),
  }),
  row('saved-audience put', 'save a condition: a JSON object, or the file of one', {
    example: `saved-audience put Readers '{"channels":"news"}'`,
    operation: 'putAudience',
    path: name(),
    body: { where: content() },
    show: saved,
  }),
  row('saved-audience delete', 'delete one', {
    example: 'saved-audience delete Readers',
    operation: 'deleteAudience',
    path: name(),
    show: deleted,
  }),
  group('test-device', 'test-devices of an application'),
  row('test-device list', 'list them by name', { operation: 'listTestDevices', columns, none }),
  row('test-device show', 'show one', {
    example: 'test-device show Anna',
    operation: 'getTestDevice',
    path: name(),
  }),
  row('test-device put', 'save the id of a device', {
    example: 'test-device put Anna 6735d1a2c3f04b0012ab34cd',
    operation: 'putTestDevice',
    path: name(),
    body: { installation: argument('<content>', 'the id of a device') },
    show: saved,
  }),
  row('test-device delete', 'delete one', {
    example: 'test-device delete Anna',
    operation: 'deleteTestDevice',
    path: name(),
    show: deleted,
  }),
];

const number = () => argument('<id>', 'number of the push in the list');

/** `carillon scheduled …`: pushes that wait for their scheduled time. */
export const scheduledCommands = [
  group('scheduled', 'scheduled pushes, with their senders'),
  row('scheduled list', 'list the scheduled pushes, the next one first', {
    operation: 'listScheduledAppPushes',
    query: page(),
    always: { query: { limit: 200 } },
    columns: { id: 'id', 'sent at': 'push-time', push: 'objectId', by: 'createdBy' },
    none: 'No push waits for its time.',
  }),
  row('scheduled move', 'send the push with this number at another time', {
    example: 'scheduled move 7 --at +2h',
    operation: 'moveScheduledAppPush',
    path: { id: number() },
    body: { push_time: required(timeAhead('--at <time>', 'time of sending (ISO 8601, or +10m)')) },
    show: (_reply, { id, push_time: time }) =>
      say('Scheduled push {id} is sent at {time}.', { id, time }),
  }),
  row('scheduled cancel', 'cancel the push with this number', {
    example: 'scheduled cancel 7',
    operation: 'cancelScheduledAppPush',
    path: { id: number() },
    show: (_reply, { id }) => say('Scheduled push {id} is cancelled.', { id }),
  }),
];
