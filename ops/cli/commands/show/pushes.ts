import { connectorIds } from '../../../../shared/domain/labels.ts';
import { outcomes } from '../../../../shared/domain/outcome.ts';
import { pushStates } from '../../../../shared/domain/pushes/record.ts';
import { textIn } from '../../../../shared/domain/texts/catalogue.ts';
import { writeTrace } from '../../../../shared/domain/texts/texts.ts';
import {
  app,
  argument,
  choice,
  connector,
  device,
  flag,
  page,
  text,
  time,
  type Values,
  whole,
} from '../../arguments.ts';
import { command } from '../../command.ts';
import { gatewayName, language, reasonIn, say } from '../../language.ts';
import type { Report } from '../../report.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { chooseAppId, connect } from '../../service.ts';

const push = () => argument('<objectId>', 'the push');

const pushOptions = {
  app: app(),
  status: choice('--status <state>', 'state of the push', pushStates),
  source: text('--source <service>', '`from-service` of the record'),
  recurring: whole('--recurring <id>', 'only those of this recurring push'),
  text: text('--text <text>', 'part of the content, or an id'),
  from: time('--from <time>', 'accepted at this time or later, such as 2027-01-31T00:00Z'),
  to: time('--to <time>', 'accepted before this time'),
  ...page(),
};

const failureOptions = {
  push: push(),
  app: app(),
  list: flag('--list', 'list the devices'),
  connector: choice('--connector <id>', 'only of this connector', connectorIds),
  outcome: choice('--outcome <outcome>', 'only with this outcome', outcomes),
  reason: text('--reason <reason>', 'only with this reason'),
  ...page(),
};

/** `carillon pushes …`: pushes, their failures and their message ids. */
export const pushReports = [
  command('pushes', 'list the pushes of an application, newest first', {
    example: 'pushes --status sending',
    takes: pushOptions,
    run: listPushes,
  }),
  row('why', 'why a device did, or did not, get a push', {
    example: 'why Xk3vD9wq0TgTz1aB 6735d1a2c3f04b0012ab34cd',
    operation: 'explainDevice',
    path: {
      objectId: push(),
      installation: device(
        '<installation>',
        "the device: its installation's objectId, installationId or device token",
      ),
    },
    show: ({ texts }) => writeTrace(texts, language()),
  }),
  command('failures', 'count the failures of a push by cause, with remedies, or list them', {
    example: 'failures Xk3vD9wq0TgTz1aB --list --connector apns',
    takes: failureOptions,
    run: showFailures,
  }),
  row(
    'undelivered',
    'list finished pushes with recipients that failed, expired or were capped, newest first',
    {
      example: 'undelivered --from 2027-01-31T00:00Z',
      operation: 'listUndelivered',
      query: {
        connector: connector(),
        reason: text('--reason <reason>', 'only pushes with a recipient that has this reason'),
        from: time('--from <time>', 'finished at this time or later (ISO 8601)'),
        to: time('--to <time>', 'accepted before this time (ISO 8601)'),
        ...page(),
      },
      columns: {
        push: 'objectId',
        failed: 'failed',
        expired: 'expired',
        capped: 'capped',
        redriven: 'redriven',
      },
    },
  ),
  row(
    'message-ids',
    'list the ids that gateways gave to the messages of a push, for questions to their support',
    {
      example: 'message-ids Xk3vD9wq0TgTz1aB',
      operation: 'listGatewayMessages',
      path: { id: push() },
      query: page(),
      columns: {
        gateway: (one) => gatewayName(one.connector),
        'message id': 'messageId',
        devices: 'devices',
        time: 'at',
      },
    },
  ),
];

type Push = Item<'listAppPushes'>;

const columns: Columns<Push> = {
  push: 'objectId',
  state: 'state',
  devices: 'devices',
  accepted: 'createdAt',
};

const waits: Columns<Push> = { 'waited in quiet hours': ({ quietWaits = 0 }) => quietWaits };

async function listPushes({
  app: requestedAppId,
  ...query
}: Values<typeof pushOptions>): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, requestedAppId);
  const reply = await service.call('listAppPushes', { path: { appId }, query });
  // Shows the column only if a push waits for quiet hours, because few apps use them.
  const hasWaits = reply.results.some(({ quietWaits = 0 }) => quietWaits > 0);
  const text = listed(reply.results, hasWaits ? { ...columns, ...waits } : columns, {
    next: reply.next,
  });
  return { document: reply, text };
}

const failureColumns: Columns<Item<'listPushFailures'>> = {
  device: 'objectId',
  gateway: (one) => gatewayName(one.connector),
  outcome: 'outcome',
  reason: ({ reason, meaning }) => reasonIn(reason, meaning),
};

async function showFailures(values: Values<typeof failureOptions>): Promise<Report> {
  const { push: id, app: requestedAppId, list, ...query } = values;
  const service = await connect();
  const path = { id, appId: await chooseAppId(service, requestedAppId) };
  if (list) {
    const reply = await service.call('listPushFailures', { path, query });
    return { document: reply, text: listed(reply.results, failureColumns, { next: reply.next }) };
  }
  const reply = await service.call('summarizePushFailures', { path });
  const lines = reply.results.map(
    ({ n, connector, outcome, reason, meaning, remedy }) =>
      `${n} × ${gatewayName(connector)}, ${outcome}: ${reasonIn(reason, meaning)}\n    ${textIn(language(), 'remedies', remedy.code)}`,
  );
  return {
    document: reply,
    text: lines.length > 0 ? lines.join('\n') : say('Every device was reached.'),
  };
}
