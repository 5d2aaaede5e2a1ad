import { argument, page, required, timeAhead } from '../../arguments.ts';
import { group } from '../../command.ts';
import { say } from '../../language.ts';
import { row } from '../../row.ts';

const number = () => argument('<id>', 'number of the push in the list');

/** `carillon scheduled …`: pushes that wait for their time. */
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
    show: (_reply, { id, push_time: time }) => say('Scheduled push {id} is sent at {time}.', { id, time }),
  }),
  row('scheduled cancel', 'cancel the push with this number', {
    example: 'scheduled cancel 7',
    operation: 'cancelScheduledAppPush',
    path: { id: number() },
    show: (_reply, { id }) => say('Scheduled push {id} is cancelled.', { id }),
  }),
];
