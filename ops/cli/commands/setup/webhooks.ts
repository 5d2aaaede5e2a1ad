import { formats } from '../../../../shared/domain/webhooks/endpoint.ts';
import { eventTypeNames } from '../../../../shared/domain/webhooks/event-types.ts';
import type { Reply } from '../../../client/client.ts';
import { argument, choice, choices, flag, required, text } from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { say } from '../../language.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { chooseAppId, connect } from '../../service.ts';

type Webhook = Reply<'getWebhook'>;

const columns: Columns<Webhook> = {
  name: 'name',
  state: (webhook) => stateOf(webhook),
  events: ({ events }) => events.join(', '),
  format: 'format',
  waiting: 'waiting',
  dropped: 'dropped',
  URL: 'url',
};

function stateOf({ isEnabled, offReason, failingSince }: Webhook): string {
  if (offReason === 'gone') return say('switched off: it answered 410');
  if (offReason === 'failing') return say('switched off: it failed for a day');
  if (!isEnabled) return say('off');
  return failingSince === null ? say('on') : say('fails since {at}', { at: failingSince });
}

const deliveryColumns: Columns<Item<'listWebhookDeliveries'>> = {
  id: 'id',
  type: 'type',
  state: 'state',
  attempts: 'attempts',
  status: 'status',
  reason: 'reason',
  at: 'occurredAt',
  'next attempt': 'nextAttemptAt',
};

/** Shows an endpoint. The secret is shown on creation and on rotation only. */
const show = (webhook: Webhook): string =>
  [
    listed([webhook], columns),
    ...(webhook.secret === undefined
      ? []
      : [say('Secret, shown only now: {secret}', { secret: webhook.secret })]),
  ].join('\n');

const showSent = ({ id }: Reply<'testWebhook'>): string =>
  say('Delivery {id} is sent now; `deliveries` shows its result.', { id });

const name = () => argument('<name>', 'name of the webhook');

const settings = () => ({
  url: argument('<url>', 'where the events are sent, https'),
  events: required(choices('--events <types...>', 'types of events', eventTypeNames)),
  format: choice('--format <format>', 'standard, or messages for a group chat', formats),
  language: choice('--language <language>', 'language of chat messages', ['en', 'zh']),
  signingSecret: text('--signing-secret <secret>', 'signing secret of a Feishu or DingTalk robot'),
});

const filters = () => ({
  state: choice('--state <state>', 'only these', ['waiting', 'delivered', 'failed']),
  cursor: text('--cursor <cursor>', 'next page, as the one before printed it'),
});

const none = 'There are no webhooks.';
const noDeliveries = 'There are no deliveries.';
const events = 'push.done push.failed push.waiting_approval';

/** Switches an endpoint on or off, of an app or of the service. */
const switchCommand = (verb: 'enable' | 'disable') =>
  command(
    `webhooks ${verb}`,
    verb === 'enable'
      ? 'switch a webhook on; what waited is sent'
      : 'switch a webhook off; what waits stays',
    {
      example: `webhooks ${verb} backend`,
      takes: {
        name: name(),
        app: text('--app <id>', 'the app'),
        service: flag('--service', 'a webhook of the service'),
      },
      run: async ({ name: wanted, app, service }) => {
        const connected = await connect();
        const { call } = connected;
        const isEnabled = verb === 'enable';
        const change = ({ url, events: types, format, language }: Webhook) => ({
          url,
          events: types,
          format,
          ...(language === null ? {} : { language }),
          isEnabled,
        });
        if (service) {
          const path = { name: wanted };
          const found = await call('getServiceWebhook', { path });
          const document = await call('putServiceWebhook', { path, body: change(found) });
          return { document, text: show(document) };
        }
        const path = { appId: await chooseAppId(connected, app), name: wanted };
        const found = await call('getWebhook', { path });
        const document = await call('putWebhook', { path, body: change(found) });
        return { document, text: show(document) };
      },
    },
  );

/** `carillon webhooks …`: endpoints that get the events of an app. */
const appCommands = [
  group('webhooks', 'webhooks: who is told what happens'),
  row('webhooks list', 'webhooks of an app, with their state', {
    operation: 'listWebhooks',
    columns,
    none,
  }),
  row('webhooks put', 'create or replace a webhook of an app', {
    example: `webhooks put backend https://example.com/hooks --events ${events}`,
    operation: 'putWebhook',
    path: { name: name() },
    body: settings(),
    show,
  }),
  row('webhooks delete', 'delete a webhook with its deliveries', {
    example: 'webhooks delete backend',
    operation: 'deleteWebhook',
    path: { name: name() },
    show: (_reply, given) => say('Webhook {name} is deleted.', { name: given.name }),
  }),
  row('webhooks test', 'send a test event', {
    example: 'webhooks test backend',
    operation: 'testWebhook',
    path: { name: name() },
    show: showSent,
  }),
  row('webhooks rotate', 'replace the secret; for 24 hours requests have two signatures', {
    example: 'webhooks rotate backend',
    operation: 'rotateWebhook',
    path: { name: name() },
    show,
  }),
  row('webhooks deliveries', 'deliveries of a webhook, newest first', {
    example: 'webhooks deliveries backend --state failed',
    operation: 'listWebhookDeliveries',
    path: { name: name() },
    query: filters(),
    columns: deliveryColumns,
    none: noDeliveries,
  }),
  row('webhooks redeliver', 'send a delivery again', {
    example: 'webhooks redeliver backend msg_1042_mfx2k1p3',
    operation: 'redeliverWebhookDelivery',
    path: { name: name(), id: argument('<id>', 'the delivery') },
    show: showSent,
  }),
  switchCommand('enable'),
  switchCommand('disable'),
];

/** `carillon service-webhooks …`: endpoints that get the events of all apps and of the service. */
const serviceCommands = [
  group('service-webhooks', 'webhooks of the service: events of all apps'),
  row('service-webhooks list', 'webhooks of the service, with their state', {
    operation: 'listServiceWebhooks',
    columns,
    none,
  }),
  row('service-webhooks put', 'create or replace a webhook of the service', {
    example:
      'service-webhooks put team https://hooks.slack.com/services/… --format slack --events breaker.opened credentials.ending',
    operation: 'putServiceWebhook',
    path: { name: name() },
    body: settings(),
    show,
  }),
  row('service-webhooks delete', 'delete a webhook of the service with its deliveries', {
    example: 'service-webhooks delete team',
    operation: 'deleteServiceWebhook',
    path: { name: name() },
    show: (_reply, given) => say('Webhook {name} is deleted.', { name: given.name }),
  }),
  row('service-webhooks test', 'send a test event', {
    example: 'service-webhooks test team',
    operation: 'testServiceWebhook',
    path: { name: name() },
    show: showSent,
  }),
  row('service-webhooks rotate', 'replace the secret; for 24 hours requests have two signatures', {
    example: 'service-webhooks rotate team',
    operation: 'rotateServiceWebhook',
    path: { name: name() },
    show,
  }),
  row('service-webhooks deliveries', 'deliveries of a webhook, newest first', {
    example: 'service-webhooks deliveries team',
    operation: 'listServiceWebhookDeliveries',
    path: { name: name() },
    query: filters(),
    columns: deliveryColumns,
    none: noDeliveries,
  }),
  row('service-webhooks redeliver', 'send a delivery again', {
    example: 'service-webhooks redeliver team msg_1042_mfx2k1p3',
    operation: 'redeliverServiceWebhookDelivery',
    path: { name: name(), id: argument('<id>', 'the delivery') },
    show: showSent,
  }),
];

export const webhookCommands = [...appCommands, ...serviceCommands];
