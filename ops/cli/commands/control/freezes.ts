import type { Reply } from '../../../client/client.ts';
import { argument, text } from '../../arguments.ts';
import { command } from '../../command.ts';
import { gatewayName, reasonIn, say } from '../../language.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { connect } from '../../service.ts';

const columns: Columns<Item<'listFreezes'>> = {
  app: ({ appId }) => appId ?? say('the whole service'),
  since: 'since',
  by: 'by',
  reason: ({ reason }) => reason || '-',
};

/**
 * `carillon freeze`, `unfreeze` and `freezes`: stop all pushes of an app or of the whole service
 * for a while.
 */
export const freezeCommands = [
  command(
    'freeze',
    'hold all pushes of the service, or of one app: those being sent stop within a second',
    {
      example: `freeze --reason 'wrong text in the last campaign'`,
      takes: {
        app: text('--app <id>', 'only this app'),
        reason: text('--reason <text>', 'why, for the other operators'),
      },
      run: async ({ app: appId, reason }) => {
        const { call } = await connect();
        const body = { reason };
        const document = await (appId === undefined
          ? call('freezeService', { body })
          : call('freezeApp', { path: { appId }, body }));
        return { document, text: listed([document], columns) };
      },
    },
  ),
  command('unfreeze', 'end a freeze: the held pushes go on in their order', {
    takes: { app: text('--app <id>', 'of this app') },
    run: async ({ app: appId }) => {
      const { call } = await connect();
      const document = await (appId === undefined
        ? call('releaseService')
        : call('releaseApp', { path: { appId } }));
      return { document, text: say('Released: the held pushes go on.') };
    },
  }),
  row('freezes', 'what is frozen, since when and why', {
    operation: 'listFreezes',
    columns,
    none: 'Nothing is frozen.',
  }),
];

const breakerColumns: Columns<Item<'listBreakers'>> = {
  id: 'id',
  state: 'state',
  forced: 'forced',
  'last failure': ({ lastFailure }) =>
    lastFailure &&
    say('{reason} at {at}', {
      reason: reasonIn(lastFailure.reason, lastFailure.meaning),
      at: lastFailure.at,
    }),
  since: 'since',
  gateway: ({ connector }) => gatewayName(connector),
};

const id = () => argument('<id>', 'as `breakers` shows it');
const show = (breaker: Reply<'openBreaker'>) => listed([breaker], breakerColumns);

/** `carillon breakers …`: list and force the circuit breakers of gateways. */
export const breakerCommands = [
  row('breakers', 'circuit breakers of gateways; while one is open, nothing is sent', {
    operation: 'listBreakers',
    columns: breakerColumns,
    none: 'There is no breaker: no app has a profile.',
  }),
  row('breakers open', 'send nothing to this gateway until the breaker is closed or released', {
    example: 'breakers open apns:wHx47FrDSrY1GzAzkZtSHtOx:_default',
    operation: 'openBreaker',
    path: { id: id() },
    show,
  }),
  row('breakers close', 'send to this gateway regardless of its failures', {
    example: 'breakers close apns:wHx47FrDSrY1GzAzkZtSHtOx:_default',
    operation: 'closeBreaker',
    path: { id: id() },
    show,
  }),
  row('breakers release', 'let the health of the gateway decide again', {
    example: 'breakers release apns:wHx47FrDSrY1GzAzkZtSHtOx:_default',
    operation: 'releaseBreaker',
    path: { id: id() },
    show,
  }),
];
