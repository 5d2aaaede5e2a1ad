import type { Reply } from '../../../client/client.ts';
import { app, argument, choice, flag, text, timeBefore, type Values } from '../../arguments.ts';
import { command } from '../../command.ts';
import { reasonIn, say, sentences } from '../../language.ts';
import type { Report } from '../../report.ts';
import { type Item, row } from '../../row.ts';
import { chooseAppId, connect } from '../../service.ts';

const kind = () => choice('--kind <kind>', 'sms or mail', ['sms', 'mail']);

const redriveOptions = {
  app: app(),
  kind: kind(),
  state: choice('--state <state>', 'failed, or kept: no provider was configured', [
    'failed',
    'kept',
  ]),
  reason: text('--reason <reason>', 'only with this reason, as the list shows it'),
  from: timeBefore('--from <time>', 'only messages of this time or later (ISO 8601)'),
  until: timeBefore('--until <time>', 'only messages before this time (ISO 8601)'),
  dryRun: flag('--dry-run', 'send nothing: count them'),
};

/**
 * `carillon outbox …` and `sms-state`: mail and SMS messages that were sent, or would have been
 * sent with a provider.
 */
export const outboxCommands = [
  row('outbox', 'mail and SMS that were sent, or would be with a provider, newest first', {
    example: 'outbox --kind sms --to +8613800000000',
    operation: 'listOutbox',
    query: {
      kind: kind(),
      to: text('--to <address>', 'phone number or mail address'),
      state: choice('--state <state>', 'state of the message', [
        'waiting',
        'sent',
        'kept',
        'failed',
      ]),
    },
    show: describe,
  }),
  row('outbox retry', 'send a message again that failed or found no provider', {
    example: 'outbox retry 42',
    operation: 'retryMessage',
    path: { id: argument('<id>') },
    show: (_reply, { id }) => say('Message {id} waits for its provider.', { id }),
  }),
  command(
    'outbox redrive',
    'send all messages again that failed, less the codes that have expired',
    {
      example: 'outbox redrive --kind sms --dry-run',
      takes: redriveOptions,
      run: redrive,
    },
  ),
  row('sms-state', 'balance, budgets and suspended countries of SMS', {
    operation: 'getSmsState',
  }),
];

/** Repeats the call until no message is left. Each call is one transaction. */
async function redrive(values: Values<typeof redriveOptions>): Promise<Report> {
  const { app: requestedAppId, dryRun, until: to, ...filters } = values;
  const service = await connect();
  const path = { appId: await chooseAppId(service, requestedAppId) };
  const sum = { messages: 0, expired: 0, unreadable: 0 };
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const operation = dryRun ? 'explainMessageRedrive' : 'redriveMessages';
    const reply = await service.call(operation, { path, body: { ...filters, to, cursor } });
    for (const name of ['messages', 'expired', 'unreadable'] as const) sum[name] += reply[name];
    cursor = reply.next ?? undefined;
    isLast = reply.next === null;
  }
  const done = dryRun
    ? say('{messages} messages would be sent again. Nothing was sent.', sum)
    : say('{messages} messages wait for their provider.', sum);
  const left = say(
    'Left out: {expired} codes that have expired, {unreadable} that no key decrypts.',
    sum,
  );
  return { document: sum, text: sentences(done, left) };
}

function describe({ results }: Reply<'listOutbox'>): string {
  const texts = results.map(
    (one) =>
      `${one.createdAt}  ${say('{kind} to {address} ({type})', { kind: one.kind, address: one.to, type: one.type })}${stateOf(one)}\n${indent(one.text ?? '')}`,
  );
  return texts.length > 0 ? texts.join('\n\n') : say('There are no messages.');
}

function stateOf(message: Item<'listOutbox'>): string {
  if (!('id' in message)) return '';
  const { id, state, reason, meaning, delivery, deliveryReason, deliveryMeaning } = message;
  const why = [reason && reasonIn(reason, meaning), delivery];
  if (deliveryReason) why.push(reasonIn(deliveryReason, deliveryMeaning));
  return `  ${[`${id}: ${state}`, ...why.filter(Boolean)].join(', ')}`;
}

const indent = (content: string) => content.replace(/^/gm, '    ');
