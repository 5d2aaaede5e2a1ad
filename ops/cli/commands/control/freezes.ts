import { text } from '../../arguments.ts';
import { command } from '../../command.ts';
import { say } from '../../language.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { connect } from '../../service.ts';

const columns: Columns<Item<'listFreezes'>> = {
  app: ({ appId }) => appId ?? say('the whole service'),
  since: 'since',
  by: 'by',
  reason: ({ reason }) => reason || '-',
};

/**
 * `carillon freeze`, `unfreeze` and `freezes`: hold the pushes of an app or of the whole service.
 */
export const freezeCommands = [
  command('freeze', 'hold all pushes of the service, or of one app: those being sent stop within a second', {
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
  }),
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
