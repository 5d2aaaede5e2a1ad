import type { Reply } from '../../../client/client.ts';
import { argument } from '../../arguments.ts';
import { gatewayName, reasonIn, say } from '../../language.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';

const columns: Columns<Item<'listBreakers'>> = {
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
const show = (breaker: Reply<'openBreaker'>) => listed([breaker], columns);

/** `carillon breakers …`: lists and forces circuit breakers of gateways. */
export const breakerCommands = [
  row('breakers', 'circuit breakers of gateways; while one is open, nothing is sent', {
    operation: 'listBreakers',
    columns,
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
