import { argument, parsedArgument, whole } from '../../arguments.ts';
import { wholeNumber } from '../../input.ts';
import { row } from '../../row.ts';

const id = () => argument('<objectId>', 'the push');

/** `carillon pause|resume|pace|cancel|approve`: commands for unfinished pushes. */
export const controlCommands = [
  row('pause', 'pause a push', {
    example: 'pause Xk3vD9wq0TgTz1aB',
    operation: 'pausePush',
    path: { id: id() },
    show: ({ objectId }) => `Push ${objectId} is paused.`,
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
    show: ({ objectId }) => `Push ${objectId} goes on.`,
  }),
  row('pace', 'change the recipients per second of an unfinished push, at least 1000; `none` for no limit', {
    example: 'pace Xk3vD9wq0TgTz1aB 5000',
    operation: 'pacePush',
    path: { id: id() },
    body: {
      flow_control: parsedArgument('<perSecond>', 'recipients per second, or none', (rate) =>
        rate === 'none' ? null : wholeNumber('<perSecond>', rate, 1),
      ),
    },
    show: ({ objectId }, { flow_control }) =>
      `Push ${objectId} ${flow_control === 'null' ? 'has no limit' : `goes at ${Math.max(1000, Number(flow_control))} a second`}.`,
  }),
  row('cancel', 'cancel a push; the remaining recipients do not get it', {
    example: 'cancel Xk3vD9wq0TgTz1aB',
    operation: 'cancelPush',
    path: { id: id() },
    show: ({ objectId }) => `Push ${objectId} is cancelled.`,
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
          ? `Push ${objectId} has its first approval; an owner or an operator of another name gives the second.`
          : `Push ${objectId} is approved.`,
    },
  ),
];
