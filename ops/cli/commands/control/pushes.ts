import { argument, parsedArgument, whole } from '../../arguments.ts';
import { wholeNumber } from '../../input.ts';
import { say } from '../../language.ts';
import { row } from '../../row.ts';

const id = () => argument('<objectId>', 'the push');

/** `carillon pause|resume|pace|cancel|approve`: control unfinished pushes. */
export const controlCommands = [
  row('pause', 'pause a push', {
    example: 'pause Xk3vD9wq0TgTz1aB',
    operation: 'pausePush',
    path: { id: id() },
    show: ({ objectId }) => say('Push {objectId} is paused.', { objectId }),
  }),
  row('resume', 'resume a paused push', {
    example: 'resume Xk3vD9wq0TgTz1aB --flow-control 2000',
    operation: 'resumePush',
    path: { id: id() },
    body: {
      flow_control: whole(
        '--flow-control <per second>',
        'limit of recipients per second from now on, at least 1000',
        1,
      ),
    },
    show: ({ objectId }) => say('Push {objectId} goes on.', { objectId }),
  }),
  row(
    'pace',
    'change the recipients per second of an unfinished push, at least 1000; `none` for no limit',
    {
      example: 'pace Xk3vD9wq0TgTz1aB 5000',
      operation: 'pacePush',
      path: { id: id() },
      body: {
        flow_control: parsedArgument('<perSecond>', 'recipients per second, or none', (rate) =>
          rate === 'none' ? null : wholeNumber('<perSecond>', rate, 1),
        ),
      },
      show: ({ objectId }, { flow_control }) =>
        flow_control === 'null'
          ? say('Push {objectId} has no limit.', { objectId })
          : say('Push {objectId} goes at {rate} a second.', {
              objectId,
              rate: Math.max(1000, Number(flow_control)),
            }),
    },
  ),
  row('cancel', 'cancel a push; the remaining recipients do not get it', {
    example: 'cancel Xk3vD9wq0TgTz1aB',
    operation: 'cancelPush',
    path: { id: id() },
    show: ({ objectId }) => say('Push {objectId} is cancelled.', { objectId }),
  }),
  row(
    'approve',
    'approve a push to many devices; one that the application sent needs an owner or two operators',
    {
      example: 'approve Xk3vD9wq0TgTz1aB',
      operation: 'approvePush',
      path: { id: id() },
      show: ({ objectId, approval }) =>
        approval?.missing === 1
          ? say(
              'Push {objectId} has its first approval; an owner or an operator of another name gives the second.',
              { objectId },
            )
          : say('Push {objectId} is approved.', { objectId }),
    },
  ),
];
