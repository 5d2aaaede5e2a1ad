import { type Command, Option } from 'commander';
import { z } from 'zod';
import { systemClock } from '../../../../shared/clock.ts';
import { reasonIn } from '../../language.ts';
import type { Report, Shell } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';
import { pastTime } from '../../time.ts';

const messages = z.object({
  results: z.array(
    z.looseObject({
      kind: z.string(),
      to: z.string(),
      type: z.string(),
      text: z.string().default(''),
      id: z.string().optional(),
      state: z.string().optional(),
      reason: z.string().nullish(),
      meaning: z.looseObject({ code: z.string(), zh: z.string() }).nullish(),
      code: z.string().optional(),
      link: z.string().optional(),
      createdAt: z.string(),
    }),
  ),
});

interface OutboxOptions {
  app?: string;
  kind?: string;
  to?: string;
  state?: string;
}

/** Adds `carillon outbox`: mail and SMS that were sent, or would be with a provider. */
export function addOutboxCommand({ program, act }: Shell): void {
  const outbox = program
    .command('outbox')
    .description('mail and SMS that were sent, or would be with a provider, newest first')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .addOption(new Option('--kind <kind>', 'sms or mail').choices(['sms', 'mail']))
    .option('--to <address>', 'phone number or mail address')
    .addOption(new Option('--state <state>', 'state of the message').choices([...messageStates]))
    .action(act(list));
  outbox
    .command('retry <id>')
    .description('send a message again that failed or found no provider')
    .option('--app <appId>', 'the application; not needed when there is only one')
    // An option of both commands arrives at the first one that declares it.
    .action(act((id: string, _options: object, command: Command) => retry(id, command.optsWithGlobals())));
  outbox
    .command('redrive')
    .description('send all messages again that failed, less the codes that have expired')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .addOption(new Option('--kind <kind>', 'sms or mail').choices(['sms', 'mail']))
    .addOption(
      new Option('--state <state>', 'failed, or kept: no provider was configured').choices([
        'failed',
        'kept',
      ]),
    )
    .option('--reason <reason>', 'only with this reason, as the list shows it')
    .option('--from <time>', 'only messages of this time or later (ISO 8601)')
    .option('--until <time>', 'only messages before this time (ISO 8601)')
    .option('--dry-run', 'send nothing: count them')
    .action(act((_options: object, command: Command) => redrive(command.optsWithGlobals())));
  program
    .command('sms-state')
    .description('balance, budgets and suspended countries of SMS')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .action(act(showSmsState));
}

const messageStates = ['waiting', 'sent', 'kept', 'failed'] as const;

async function retry(id: string, { app }: OutboxOptions): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, app));
  const document = await service.admin('POST', `/apps/${appId}/outbox/${part(id)}/retry`);
  return { document, text: `Message ${id} waits for its provider.` };
}

const redriven = z.looseObject({
  messages: z.number(),
  expired: z.number(),
  unreadable: z.number(),
  next: z.string().nullable(),
});

interface RedriveOptions extends OutboxOptions {
  reason?: string;
  from?: string;
  until?: string;
  dryRun?: boolean;
}

/** Calls until no message is left; each call is one transaction. */
async function redrive(options: RedriveOptions): Promise<Report> {
  const { app, dryRun, kind, state, reason } = options;
  const service = await connect();
  const appId = part(await chooseAppId(service, app));
  const path = `/apps/${appId}/outbox/redrive${dryRun ? '/explain' : ''}`;
  const times = { from: timeOf('--from', options.from), to: timeOf('--until', options.until) };
  const sum = { messages: 0, expired: 0, unreadable: 0 };
  let cursor: string | undefined;
  do {
    const body = { kind, state, reason, ...times, cursor };
    const page = redriven.parse(await service.admin('POST', path, body));
    for (const name of ['messages', 'expired', 'unreadable'] as const) sum[name] += page[name];
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  const left = `Left out: ${sum.expired} codes that have expired, ${sum.unreadable} that no key decrypts.`;
  const done = dryRun ? 'would be sent again. Nothing was sent.' : 'wait for their provider.';
  return { document: sum, text: `${sum.messages} messages ${done} ${left}` };
}

const timeOf = (option: string, text: string | undefined): string | undefined =>
  text === undefined ? undefined : pastTime(option, text, systemClock.now());

async function showSmsState({ app }: OutboxOptions): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, app));
  const document = await service.admin('GET', `/apps/${appId}/sms-state`);
  return { document, text: JSON.stringify(document, null, 2) };
}

async function list({ app, kind, to, state }: OutboxOptions): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, app);
  const filters = { ...(kind ? { kind } : {}), ...(to ? { to } : {}), ...(state ? { state } : {}) };
  const query = new URLSearchParams(filters);
  const reply = await service.admin('GET', `/apps/${part(appId)}/outbox?${query}`);
  const text = messages
    .parse(reply)
    .results.map(
      (one) => `${one.createdAt}  ${one.kind} to ${one.to} (${one.type})${stateOf(one)}\n${indent(one.text)}`,
    )
    .join('\n\n');
  return { document: reply, text: text === '' ? 'There are no messages.' : text };
}

const stateOf = ({ id, state, reason, meaning }: z.infer<typeof messages>['results'][number]) =>
  id === undefined ? '' : `  ${id}: ${state}${reason ? `, ${reasonIn(reason, meaning)}` : ''}`;

const indent = (text: string) => text.replace(/^/gm, '    ');
