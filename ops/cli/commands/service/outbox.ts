import { Option } from 'commander';
import { z } from 'zod';
import type { Report, Shell } from '../../report.ts';
import { chooseApp, connect } from '../../service.ts';

const messages = z.object({
  results: z.array(
    z.looseObject({
      kind: z.string(),
      to: z.string(),
      type: z.string(),
      text: z.string(),
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
}

/** Adds `carillon outbox`: mail and SMS that were sent, or would be with a provider. */
export function addOutboxCommand({ program, act }: Shell): void {
  program
    .command('outbox')
    .description('mail and SMS that were sent, or would be with a provider, newest first')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .addOption(new Option('--kind <kind>', 'sms or mail').choices(['sms', 'mail']))
    .option('--to <address>', 'phone number or mail address')
    .action(act(list));
}

async function list({ app, kind, to }: OutboxOptions): Promise<Report> {
  const service = await connect();
  const { appId } = await chooseApp(service, app);
  const query = new URLSearchParams({ ...(kind ? { kind } : {}), ...(to ? { to } : {}) });
  const reply = await service.admin('GET', `/apps/${encodeURIComponent(appId)}/outbox?${query}`);
  const text = messages
    .parse(reply)
    .results.map((one) => `${one.createdAt}  ${one.kind} to ${one.to} (${one.type})\n${indent(one.text)}`)
    .join('\n\n');
  return { document: reply, text: text === '' ? 'There are no messages.' : text };
}

const indent = (text: string) => text.replace(/^/gm, '    ');
